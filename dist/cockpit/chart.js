// What all members sent, or received, in the last two minutes: areas, one above the other.

import { bits, element, svg } from "./dom.js";
import { SECONDS } from "./rates.js";

const WIDTH = 600;
const HEIGHT = 140;
// Room for the scale at the left.
const LEFT = 84;
// As many colours as there are members at most.
export const COLOURS = 16;

// The next of 1, 2, 5, 10, ... that is not less.
function ceiling(rate) {
  const power = 10 ** Math.floor(Math.log10(Math.max(rate, 1000)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= rate);
}

// history: of `Rates`; names: the members in order; way: "tx" or "rx".
export function chart(title, history, names, way) {
  const end = history.at(-1)?.time ?? 0;
  const sums = history.map(({ members }) => names.reduce((sum, name) => sum + (members.get(name)?.[way] ?? 0), 0));
  const top = ceiling(Math.max(0, ...sums));
  const x = (time) => WIDTH - ((end - time) / (SECONDS * 1000)) * (WIDTH - LEFT);
  const y = (rate) => HEIGHT - 18 - (rate / top) * (HEIGHT - 28);
  const drawing = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  for (const part of [0, 0.5, 1]) {
    drawing.append(
      svg("line", { class: "grid", x1: LEFT, x2: WIDTH, y1: y(top * part), y2: y(top * part) }),
      svg("text", { class: "scale", x: LEFT - 6, y: y(top * part) + 4, "text-anchor": "end" }, bits(top * part)),
    );
  }
  let below = history.map(() => 0);
  names.forEach((name, number) => {
    const above = history.map(({ members }, at) => below[at] + (members.get(name)?.[way] ?? 0));
    const line = (heights) => history.map(({ time }, at) => `${x(time).toFixed(1)},${y(heights[at]).toFixed(1)}`);
    const points = [...line(above), ...line(below).reverse()].join(" ");
    drawing.append(svg("polygon", { class: `colour-${number % COLOURS}`, points }, svg("title", {}, name)));
    below = above;
  });
  drawing.append(
    svg("text", { class: "scale", x: LEFT, y: HEIGHT - 2 }, `${SECONDS / 60} minutes ago`),
    svg("text", { class: "scale", x: WIDTH, y: HEIGHT - 2, "text-anchor": "end" }, "now"),
  );
  return element("figure", {}, element("figcaption", {}, title, element("b", {}, bits(sums.at(-1) ?? 0))), drawing);
}
