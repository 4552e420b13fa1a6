// A bond of links that the user chooses: what `check` finds of them, then the bond, which is undone unless the user confirms it.

import { bits, element } from "./dom.js";

// For the page to be reached over the new bond, and for the user to see that it is.
const CONFIRM_MS = 60_000;

// The kinds of interfaces that can be links: hardware has none, and the other end of a veth is elsewhere.
function isLink({ link_type, linkinfo, link, master, flags }) {
  const kind = linkinfo?.info_kind;
  return link_type === "ether" && !flags.includes("LOOPBACK") && !master && (!kind || (kind === "veth" && !link));
}

// The interfaces of this machine that could become members.
async function candidates() {
  const interfaces = JSON.parse(await cockpit.spawn(["ip", "-json", "-details", "address"], { err: "message" }));
  const read = (name) =>
    cockpit.spawn(["cat", `/sys/class/net/${name}/speed`], { err: "ignore" }).then(
      // The kernel has -1 where the driver does not say.
      (text) => (Number(text) > 0 ? Number(text) : undefined),
      () => undefined,
    );
  return Promise.all(
    interfaces.filter(isLink).map(async ({ ifname, address, flags, addr_info }) => ({
      name: ifname,
      mac: address,
      carrier: flags.includes("LOWER_UP"),
      up: flags.includes("UP"),
      addresses: addr_info.filter(({ scope }) => scope === "global").map(({ local, prefixlen }) => `${local}/${prefixlen}`),
      speed: await read(ifname),
    })),
  );
}

function freeName(bonds) {
  const taken = bonds.map((bond) => bond.name);
  let number = 0;
  while (taken.includes(`bond${number}`)) number += 1;
  return `bond${number}`;
}

function stateOf({ up, carrier, speed }) {
  if (!up) return "down";
  if (!carrier) return "no carrier";
  return speed ? bits(speed * 1e6) : "up";
}

export function findings(list) {
  return element(
    "ul",
    { class: "findings" },
    ...list.map(({ severity, object, text, hint }) =>
      element(
        "li",
        { class: severity },
        element("b", {}, severity),
        ` ${object}: ${text}`,
        hint ? element("div", {}, element("code", {}, hint)) : undefined,
      ),
    ),
  );
}

function failure(error) {
  return element(
    "div",
    { class: "box error", role: "alert" },
    error.message ?? String(error),
    error.hint ? element("div", {}, element("code", {}, error.hint)) : undefined,
  );
}

// Asks in `dialog`, and makes the bond through `daemon`. `bonds` are those that there are; `made` is told of a new one.
export async function make(dialog, daemon, bonds, made) {
  const show = (title, body, ...buttons) =>
    dialog.replaceChildren(
      element("h2", { id: "dialog-title" }, title),
      ...body.filter((part) => part),
      element("footer", {}, ...buttons, element("button", { type: "button", onclick: () => dialog.close() }, "Cancel")),
    );
  // Whatever fails is said where the user looks; the other buttons still work.
  const trying = (work) => async () => {
    dialog.querySelector(".box.error")?.remove();
    const buttons = [...dialog.querySelectorAll("button.primary")];
    for (const button of buttons) button.disabled = true;
    try {
      await work();
    } catch (error) {
      dialog.querySelector("footer").before(failure(error));
      for (const button of buttons) button.disabled = false;
    }
  };
  const button = (text, work) => element("button", { type: "button", class: "primary", onclick: trying(work) }, text);

  const choose = (links, chosen, name) => {
    const rows = links.map((link) =>
      element(
        "tr",
        {},
        element("td", {}, element("input", { type: "checkbox", id: `link-${link.name}`, value: link.name, checked: chosen.includes(link.name) })),
        element("td", {}, element("label", { for: `link-${link.name}` }, link.name)),
        element("td", {}, stateOf(link)),
        element("td", {}, link.addresses.join(", ")),
        element("td", {}, link.mac),
      ),
    );
    const head = element("tr", {}, ...["", "Link", "State", "Addresses", "MAC"].map((text) => element("th", {}, text)));
    const input = element("input", { id: "bond-name", value: name, maxlength: 15, spellcheck: "false" });
    const next = async () => {
      const picked = [...dialog.querySelectorAll("input:checked")].map((box) => box.value);
      if (picked.length === 0) throw new Error("Choose at least one link.");
      const { findings: found } = await daemon.call("Check", { interfaces: picked });
      confirm(links, picked, input.value.trim(), found);
    };
    show(
      "Make a bond: choose links",
      [
        element("p", {}, "Links on ordinary switches, or cables to another host. Links that have the same speed and are in the same network are usual."),
        element("table", { class: "list" }, element("thead", {}, head), element("tbody", {}, ...rows)),
        element("p", {}, element("label", { for: "bond-name" }, "Name "), input),
      ],
      button("Next", next),
    );
  };

  const confirm = (links, picked, name, found) => {
    const bad = found.filter(({ severity }) => severity !== "ok");
    const moves = links.some((link) => picked.includes(link.name) && link.addresses.length > 0);
    const add = async () => {
      const request = { method: "BondAdd", parameters: { name, members: picked, move_address: true } };
      const { warnings } = await daemon.call("Tentative", { confirm_ms: CONFIRM_MS, request });
      dialog.close();
      made({ name, members: picked, warnings });
    };
    show(
      `Make a bond: ${name}`,
      [
        element("p", {}, `${picked.join(", ")} will carry the traffic of ${name}.`),
        moves ? undefined : element("p", {}, "No address moves to it: ", element("code", {}, `linkbraid bond set ${name} --address ADDRESS/PREFIX`)),
        element("p", {}, bad.length ? "What was found of these links:" : "Nothing is wrong with these links."),
        findings(bad),
        element("p", {}, `The bond is undone after ${CONFIRM_MS / 1000} s unless you keep it. So you cannot lose this machine.`),
      ],
      button("Make it", add),
      element("button", { type: "button", onclick: () => choose(links, picked, name) }, "Back"),
    );
  };

  show("Make a bond", [element("p", {}, "Looking for links ...")]);
  dialog.showModal();
  try {
    const links = await candidates();
    if (links.length === 0) throw new Error("No link is free: each is down for good, in a bond, or in a bridge.");
    choose(links, [], freeName(bonds));
  } catch (error) {
    show("Make a bond", [failure(error)]);
  }
}
