// Rates from counters that are read again and again, and the last two minutes of them.

export const SECONDS = 120;

// Counters of one bond's members, by name, and what they were before.
export class Rates {
  #last = new Map();
  // Oldest first: { time, members: Map(name -> { tx, rx }) }, in bits per second.
  history = [];

  // Takes a bond as `show` has it, read at `now` (ms of a clock that only goes forward).
  take(bond, now) {
    const members = new Map();
    for (const { interface: name, tx_bytes, rx_bytes } of bond.members) {
      const last = this.#last.get(name);
      this.#last.set(name, { now, tx_bytes, rx_bytes });
      // A counter that is less than it was belongs to a member that joined anew.
      if (!last || now <= last.now || tx_bytes < last.tx_bytes || rx_bytes < last.rx_bytes) continue;
      const rate = (before, after) => ((after - before) * 8000) / (now - last.now);
      members.set(name, { tx: rate(last.tx_bytes, tx_bytes), rx: rate(last.rx_bytes, rx_bytes) });
    }
    this.history.push({ time: now, members });
    while (this.history[0].time < now - SECONDS * 1000) this.history.shift();
  }

  // What a member sends and receives now, if that is known.
  now(name) {
    return this.history.at(-1)?.members.get(name);
  }
}
