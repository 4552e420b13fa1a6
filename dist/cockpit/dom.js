// Elements from a tag, attributes and children. Text is always text: what peers and drivers say never becomes markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== undefined && child !== null));
  return made;
}

export function element(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

export function plural(count, one, more = `${one}s`) {
  return `${count} ${count === 1 ? one : more}`;
}

// Bits per second, as people write the rate of a link.
export function bits(rate) {
  for (const [unit, name] of [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]]) {
    if (rate >= unit) return `${Number((rate / unit).toPrecision(3))} ${name}`;
  }
  return `${Math.round(rate)} bit/s`;
}
