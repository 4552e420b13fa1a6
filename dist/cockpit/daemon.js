// The daemon's socket: calls and replies of Varlink, each a JSON object and a zero byte (docs/reference/org.linkbraid.Daemon.varlink).

const SOCKET = "/run/linkbraid/linkbraid.sock";
const INTERFACE = "org.linkbraid.Daemon";

// What an error of the daemon says, in two lines as the command prints them.
export class Refused extends Error {
  constructor(error, parameters) {
    const { object, what, cause, hint } = parameters ?? {};
    super(object ? `${object}: ${what}: ${cause}` : error);
    this.hint = hint;
  }
}

// The daemon cannot be asked. `problem` is a word of cockpit's, such as not-found.
export class Unreachable extends Error {
  constructor(problem) {
    super(
      problem === "access-denied"
        ? "Only administrators may see this page: switch to administrative access above."
        : "The daemon of linkbraid does not answer on this machine.",
    );
    this.hint = problem === "access-denied" ? undefined : "systemctl enable --now linkbraid";
  }
}


class Connection {
  constructor(onMessage, onClose) {
    this.channel = cockpit.channel({ payload: "stream", unix: SOCKET, superuser: "try", binary: true });
    let bytes = new Uint8Array(0);
    this.channel.addEventListener("message", (_, data) => {
      const all = new Uint8Array(bytes.length + data.length);
      all.set(bytes);
      all.set(data, bytes.length);
      let from = 0;
      for (let end = all.indexOf(0, from); end >= 0; end = all.indexOf(0, from)) {
        onMessage(JSON.parse(new TextDecoder().decode(all.subarray(from, end))));
        from = end + 1;
      }
      bytes = all.slice(from);
    });
    this.channel.addEventListener("close", (_, options) => onClose(options.problem));
  }

  send(call) {
    this.channel.send(new TextEncoder().encode(`${JSON.stringify(call)}\0`));
  }

  close() {
    this.channel.close();
  }
}

// Asks one thing after the other over one connection, which is made anew when it is lost.
export class Daemon {
  #connection = null;
  #waiting = [];

  call(method, parameters = {}) {
    return new Promise((resolve, reject) => {
      this.#connection ??= new Connection((reply) => this.#answered(reply), (problem) => this.#lost(problem));
      this.#waiting.push({ resolve, reject });
      this.#connection.send({ method: `${INTERFACE}.${method}`, parameters });
    });
  }

  #answered({ error, parameters }) {
    const { resolve, reject } = this.#waiting.shift();
    if (error) reject(new Refused(error, parameters));
    else resolve(parameters);
  }

  #lost(problem) {
    const lost = this.#waiting;
    this.#connection = null;
    this.#waiting = [];
    for (const { reject } of lost) reject(new Unreachable(problem));
  }
}
