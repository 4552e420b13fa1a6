// The page: asks the daemon each second, and draws what it says.

import { chart } from "./chart.js";
import { Daemon } from "./daemon.js";
import { bits, element, plural } from "./dom.js";
import { findings, make } from "./make.js";
import { Rates } from "./rates.js";
import { topology } from "./topology.js";

const PERIOD_MS = 1000;
const EVENTS = 50;

const daemon = new Daemon();
const rates = new Map();
// Details that the user has opened, by their ids.
const opened = new Set();
let bonds = [];
// What the daemon said of the last change, and the bond that was made here and is not confirmed yet.
let warnings = [];
let made = null;

const at = (id) => document.getElementById(id);

function lanesTable(lanes) {
  const head = ["Link", "Other host", "Its MAC", "State", "Share", "Carries"];
  const rows = lanes.map(({ member, peer, peer_mac, state, share_ppm, measured_kbit, told_kbit, share_from, class: name }) => {
    const kbit = share_from === "measured" ? measured_kbit : told_kbit;
    const carries = kbit ? `${bits(kbit * 1000)} (${share_from})` : "";
    const share = share_ppm ? `${(share_ppm / 10_000).toFixed(1)} %` : "";
    const cells = [name ? `${member} (${name})` : member, peer, peer_mac ?? "", state, share, carries];
    return element("tr", { class: state }, ...cells.map((text) => element("td", {}, text)));
  });
  return element(
    "table",
    { class: "list" },
    element("thead", {}, element("tr", {}, ...head.map((text) => element("th", {}, text)))),
    element("tbody", {}, ...rows),
  );
}

// Part of a card that can be opened, and stays so when it is drawn again.
function details(id, title, body) {
  const toggled = (event) => (event.target.open ? opened.add(id) : opened.delete(id));
  return element("details", { id, open: opened.has(id), ontoggle: toggled }, element("summary", {}, title), body);
}

function card(bond, peers, lanes) {
  const known = rates.get(bond.name);
  const names = bond.members.map((member) => member.interface);
  const working = bond.members.filter((member) => member.live && !member.reason).length;
  const found = (bond.findings ?? []).filter(({ severity }) => severity !== "ok");
  const facts = [`${working} of ${plural(names.length, "link")} carry traffic`, plural(peers.length, "other host"), `policy ${bond.policy}`];
  return element(
    "section",
    { class: "card", id: `bond-${bond.name}` },
    element(
      "h2",
      {},
      bond.name,
      element("span", { class: `health ${bond.health}` }, bond.health),
      element("small", {}, facts.join(", ")),
    ),
    bond.reason ? element("p", { class: `box ${bond.health === "down" ? "error" : "warning"}` }, bond.reason) : undefined,
    bond.absent.length ? element("p", { class: "box warning" }, `Not there: ${bond.absent.join(", ")}`) : undefined,
    ...bond.conflicts.map((conflict) => element("p", { class: "box error" }, conflict)),
    found.length ? findings(found) : undefined,
    topology(bond, peers, lanes, known),
    element(
      "div",
      { class: "charts" },
      chart("Sent", known.history, names, "tx"),
      chart("Received", known.history, names, "rx"),
    ),
    details(`lanes-${bond.name}`, plural(lanes.length, "lane"), lanesTable(lanes)),
  );
}

function eventRow({ time_ms, bond, kind, object, old, new: now, text, reason, took_us }) {
  const took = took_us ? ` (took ${took_us < 10_000 ? `${took_us} µs` : `${Math.round(took_us / 1000)} ms`})` : "";
  const bad = ["down", "lost", "cut", "silent", "degraded"].includes(now ?? "");
  return element(
    "tr",
    { class: bad ? "bad" : "" },
    element("td", {}, new Date(time_ms).toLocaleTimeString()),
    element("td", {}, bond),
    element("td", {}, `${kind} ${object}`),
    element("td", {}, `${old ?? "new"} → ${now ?? "gone"}`),
    element("td", {}, `${text || reason}${took}`),
  );
}

// What has a bond at the next boot, too.
function keeping({ name, members }) {
  const file = `/etc/linkbraid/${name}.toml`;
  const text = `[bond.${name}]\nmember = [${members.map((member) => `"${member}"`).join(", ")}]\n`;
  return element(
    "div",
    { class: "box note" },
    element("p", {}, `${name} stays until the next boot. To have it then, too, write `, element("code", {}, file), ":"),
    element("pre", {}, text),
    element("p", {}, `and give its address to ${name} where this machine's network is configured, in place of ${members[0]}.`),
    element("button", { type: "button", onclick: (event) => event.target.parentElement.remove() }, "Close"),
  );
}

// The answer to the change that waits.
async function answer(undo) {
  try {
    warnings = (await daemon.call("Confirm", { undo })).warnings;
    if (made && !undo) at("notes").append(keeping(made));
    made = null;
    await refresh();
  } catch (error) {
    warnings = [error.message];
  }
}

function showChanges(changes) {
  const button = (text, attributes, undo) =>
    element("button", { type: "button", ...attributes, onclick: () => answer(undo) }, text);
  at("changes").replaceChildren(
    ...warnings.map((warning) => element("p", { class: "box warning" }, warning)),
    ...changes.map(({ command, left_ms }) =>
      element(
        "div",
        { class: "box warning change", role: "alert" },
        element("code", {}, command),
        ...(left_ms === undefined
          ? ["is under way"]
          : [
              `is undone in ${Math.ceil(left_ms / 1000)} s, unless you keep it.`,
              button("Keep it", { class: "primary", id: "keep" }, false),
              button("Undo it now", {}, true),
            ]),
      ),
    ),
  );
}

function showTrouble(error) {
  at("trouble").hidden = !error;
  at("trouble").replaceChildren(
    ...(error ? [error.message, error.hint ? element("div", {}, element("code", {}, error.hint)) : ""] : []),
  );
}

async function refresh() {
  const [shown, lanes, peers, changes] = await Promise.all([
    daemon.call("Show"),
    daemon.call("Lanes"),
    daemon.call("Peers"),
    daemon.call("Changes"),
  ]);
  bonds = shown.bonds ?? [];
  const now = performance.now();
  for (const name of rates.keys()) if (!bonds.some((bond) => bond.name === name)) rates.delete(name);
  for (const bond of bonds) {
    if (!rates.has(bond.name)) rates.set(bond.name, new Rates());
    rates.get(bond.name).take(bond, now);
  }
  const of = (records, bond) => records.filter((record) => record.bond === bond.name);
  at("bonds").replaceChildren(
    ...(bonds.length
      ? bonds.map((bond) => card(bond, of(peers.peers, bond), of(lanes.lanes, bond).filter((lane) => lane.peer_mac)))
      : [element("p", { class: "card empty" }, "There is no bond on this machine yet.")]),
  );
  if (changes.changes.length === 0 && made) {
    // Nobody confirmed it in time.
    made = null;
    warnings = [];
  }
  showChanges(changes.changes);
  const events = bonds.flatMap((bond) => bond.events).sort((a, b) => b.time_ms - a.time_ms);
  at("events-section").hidden = events.length === 0;
  at("events").replaceChildren(...events.slice(0, EVENTS).map(eventRow));
}

// One look after the other, however long each takes; none while nobody looks.
async function follow() {
  if (!cockpit.hidden) {
    try {
      await refresh();
      showTrouble(null);
    } catch (error) {
      showTrouble(error);
    }
  }
  setTimeout(follow, PERIOD_MS);
}

at("make").addEventListener("click", () =>
  make(at("dialog"), daemon, bonds, (bond) => {
    made = bond;
    // How to confirm it is a button here.
    warnings = bond.warnings.filter((warning) => !warning.endsWith("linkbraid confirm"));
  }),
);
cockpit.transport.wait(follow);
