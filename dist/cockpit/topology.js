// A picture of a bond: this host's links, the switches that they are on, and the links of other hosts.

import { bits, plural, svg } from "./dom.js";
import { COLOURS } from "./chart.js";

const WIDTH = 960;
const ROW = 34;
const GAP = 18;
const BOX = 290;
// Longer words do not fit beside a link's name.
const WORDS = 32;
const SWITCH = 90;
// More are counted and not drawn.
const PEERS_DRAWN = 12;

// The best that is known of the lanes between some links.
const STATES = ["up", "heard", "suspect", "init", "down", "cut"];

function best(lanes) {
  return STATES.find((state) => lanes.some((lane) => lane.state === state));
}

function works(state) {
  return state === "up" || state === "heard";
}

// Which line leads from a switch to a link of a peer: { segment, state }, one for each switch over which it is reached; if there is
// none, one for the first on which it was looked for.
function ways(members, lanes, mac) {
  const of = (segment) => {
    const names = members.filter((member) => member.segment === segment).map((member) => member.interface);
    return lanes.filter((lane) => lane.peer_mac === mac && names.includes(lane.member));
  };
  const segments = [...new Set(members.map((member) => member.segment))];
  const all = segments.map((segment) => ({ segment, state: best(of(segment)) })).filter(({ state }) => state);
  const good = all.filter(({ state }) => works(state));
  return good.length ? good : all.slice(0, 1);
}

function box(x, y, rows, title, subtitle) {
  return svg(
    "g",
    {},
    svg("rect", { class: "host", x, y, width: BOX, height: rows * ROW + 44, rx: 6 }),
    svg("text", { class: "title", x: x + 12, y: y + 20 }, title),
    svg("text", { class: "subtitle", x: x + 12, y: y + 36 }, subtitle),
  );
}

function short(text) {
  return text.length > WORDS ? `${text.slice(0, WORDS - 1)}…` : text;
}

function link(x, y, { name, text, state, why, colour }) {
  return svg(
    "g",
    { class: `link ${state}` },
    svg("title", {}, why || name),
    svg("rect", { class: "back", x: x + 8, y: y + 3, width: BOX - 16, height: ROW - 6, rx: 4 }),
    colour === undefined ? undefined : svg("rect", { class: `colour-${colour}`, x: x + 8, y: y + 3, width: 6, height: ROW - 6 }),
    svg("text", { x: x + 22, y: y + 22 }, name),
    svg("text", { class: "subtitle", x: x + BOX - 16, y: y + 22, "text-anchor": "end" }, short(text)),
  );
}

function line(from, to, state, why) {
  const middle = (from.x + to.x) / 2;
  const path = `M${from.x} ${from.y} C${middle} ${from.y} ${middle} ${to.y} ${to.x} ${to.y}`;
  return svg("path", { class: `cable ${state}`, d: path }, svg("title", {}, why));
}

// bond: of `show`; peers and lanes: those of the bond; rates: of its members.
export function topology(bond, peers, lanes, rates) {
  const segments = [...new Set(bond.members.map((member) => member.segment))].sort((a, b) => a - b);
  const members = [...bond.members].sort((a, b) => a.segment - b.segment);
  const drawn = peers.slice(0, PEERS_DRAWN);
  const left = members.length * ROW + 44;
  const heights = drawn.map((peer) => peer.members.length * ROW + 44);
  const right = heights.reduce((sum, height) => sum + height + GAP, 0) - GAP;
  const more = peers.length > drawn.length ? 24 : 0;
  const height = Math.max(left, right, segments.length * 70) + more + 8;
  const drawing = svg("svg", {
    class: "topology",
    viewBox: `0 0 ${WIDTH} ${height}`,
    role: "img",
    "aria-label": `${plural(bond.members.length, "link")} of this host, ${plural(segments.length, "switch", "switches")}, ${plural(peers.length, "other host")}`,
  });
  const cables = svg("g");
  drawing.append(cables);
  const middle = (WIDTH - SWITCH) / 2;
  const port = new Map();
  segments.forEach((segment, at) => {
    const y = (height - more) * ((at + 0.5) / segments.length) - 20;
    port.set(segment, y + 20);
    drawing.append(
      svg("rect", { class: "switch", x: middle, y, width: SWITCH, height: 40, rx: 4 }),
      svg("text", { x: middle + SWITCH / 2, y: y + 24, "text-anchor": "middle" }, `switch ${segment + 1}`),
    );
  });
  const top = (height - more - left) / 2;
  // Link-local ones are left out: every interface has one.
  const addresses = bond.addresses.filter((address) => !address.startsWith("fe80:"));
  drawing.append(box(4, top, members.length, "this host", addresses.slice(0, 2).join(", ") || bond.mac));
  members.forEach((member, at) => {
    const y = top + 44 + at * ROW - 4;
    const state = member.live && !member.reason ? "up" : "down";
    const rate = rates?.now(member.interface);
    const text = state === "down" ? member.reason || "down" : rate ? `↑ ${bits(rate.tx)}  ↓ ${bits(rate.rx)}` : "";
    const speed = member.speed_mbit ? ` (${bits(member.speed_mbit * 1e6)})` : "";
    const why = `${member.interface}${speed}, ${member.mac}${member.reason ? `: ${member.reason}` : ""}`;
    const colour = bond.members.indexOf(member) % COLOURS;
    drawing.append(link(4, y, { name: member.interface, text, state, why, colour }));
    cables.append(line({ x: 4 + BOX - 8, y: y + ROW / 2 }, { x: middle, y: port.get(member.segment) }, state, why));
  });
  let y = (height - more - right) / 2;
  const x = WIDTH - BOX - 4;
  drawn.forEach((peer, at) => {
    const silent = peer.state === "silent" ? ", silent" : "";
    drawing.append(box(x, y, peer.members.length, peer.address ?? peer.mac, `${peer.mac}${silent}`));
    peer.members.forEach(({ mac, live, weight_mbit }, row) => {
      const at = y + 44 + row * ROW - 4;
      const found = ways(bond.members, lanes, mac);
      const state = live && found.some((way) => works(way.state)) ? "up" : "down";
      const why = live ? "no lane is proven" : "its host takes no traffic here";
      const text = state === "up" ? (weight_mbit ? bits(weight_mbit * 1e6) : "") : live ? "not proven" : "down";
      drawing.append(link(x, at, { name: mac, text, state, why: state === "up" ? mac : `${mac}: ${why}` }));
      for (const way of found) {
        const works_now = state === "up" && works(way.state) ? "up" : "down";
        cables.append(line({ x: middle + SWITCH, y: port.get(way.segment) }, { x: x + 8, y: at + ROW / 2 }, works_now, `${mac}: ${way.state}`));
      }
    });
    y += heights[at] + GAP;
  });
  if (more) {
    const text = `and ${plural(peers.length - drawn.length, "other host")}: linkbraid peers ${bond.name}`;
    drawing.append(svg("text", { class: "subtitle", x, y: height - 8 }, text));
  }
  return drawing;
}
