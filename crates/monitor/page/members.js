// The array as a drawing of its members, and the same in figures.

import { byId, count, make, mark, percent, put, rate, show, sign, span } from "./words.js";

// What a member's place looks like, and is called.
function look(device) {
  if (device.not_answering) return ["silent", "no answer"];
  if (device.lacks_room) return ["full", "no room"];
  if (device.state === "missing") return ["unknown", "missing"];
  return [device.state, device.state];
}

// What is done of a member: of its rebuild, or of the copy on the device that is to take its place.
function progress(device, work) {
  if (device.state === "rebuilding" && work?.kind === "rebuild") return { what: "rebuilding", ...work };
  const next = device.replacement;
  return next ? { what: "being replaced", done: next.done_bytes, total: next.total_bytes } : { done: 0, total: 0 };
}

// Where a rate lies between 4 KiB/s and 4 GiB/s, in per cent; every fifth power of two is as far from the next.
function height(bytes) {
  const doublings = Math.log2(Math.max(bytes, 1) / 4096);
  return bytes < 1 ? 0 : Math.min(100, Math.max(3, 5 * doublings));
}

class Bay {
  constructor(name) {
    this.plate = make("span", { class: "plate" });
    this.fill = make("i", { class: "fill" });
    this.read = make("i", { class: "bar r" });
    this.written = make("i", { class: "bar w" });
    this.word = make("span", {});
    this.sign = make("span", { class: "lamp" });
    this.flaws = make("span", { class: "flaws" });
    this.share = make("span", { class: "share" });
    const ticks = make("i", { class: "ticks" });
    const bars = [ticks, this.fill, this.read, this.written].map((bar) => (mark(bar, "aria-hidden", true), bar));
    const glass = make("span", { class: "glass" }, ...bars, this.share);
    this.state = make("span", { class: "word" }, this.sign, this.word);
    this.element = make("li", { class: "bay" }, make("b", {}, name), glass, this.state, this.flaws);
  }

  update(device, rates, work) {
    const [kind, word] = look(device);
    if (this.kind !== kind) {
      this.kind = kind;
      this.sign.replaceChildren(sign(kind));
      mark(this.element, "data-state", kind);
    }
    const filling = progress(device, work);
    put(this.word, filling.what ?? word);
    this.fill.style.height = `${(100 * filling.done) / Math.max(filling.total, 1)}%`;
    put(this.share, filling.total > 0 ? percent(filling.done, filling.total) : "");
    this.read.style.height = `${height(rates.read)}%`;
    this.written.style.height = `${height(rates.written)}%`;
    const flaws = device.errors ? device.errors.read + device.errors.write + device.errors.checksum : 0;
    put(this.flaws, flaws > 0 ? `${count(flaws)} ${flaws === 1 ? "error" : "errors"}` : "");
  }
}

// With more bays they are small, and their figures are shown when they are asked for.
const MANY = 16;
// One row of bays: members of one role.
const ROLES = [["main", "SSDs"], ["log", "log devices"], ["spare", "spares"]];

const bays = new Map();
let drawn = "";

// The bays are made anew when other members are there, and else only change.
function arrange(devices, shape) {
  const key = devices.map((device) => device.name).join();
  if (key === drawn) return;
  if (drawn === "") byId("member-figures").open = matchMedia("(min-width: 60rem)").matches && devices.length <= MANY;
  drawn = key;
  bays.clear();
  const shelves = [];
  const isMany = devices.length > MANY;
  for (const [role, called] of ROLES) {
    const own = devices.filter((device) => device.role === role);
    if (own.length === 0) continue;
    for (const device of own) bays.set(device.name, new Bay(device.name));
    const list = make("ul", { class: isMany ? "bays small" : "bays" });
    list.append(...own.map((device) => bays.get(device.name).element));
    const one = own.length === 1 ? called.replace(/s$/, "") : called;
    const code = role === "main" ? ` (${shape.data_count} + ${shape.parity_count})` : "";
    const text = `${own.length} ${one}${code}`;
    const title = make("h3", {}, text);
    mark(list, "aria-label", text);
    const shelf = make("div", { class: "shelf", "data-role": role }, title, list);
    // Shelves stand side by side where all their bays have room, each as wide as it has bays.
    shelf.style.flex = isMany ? "1 1 100%" : `${own.length} 1 min(100%, ${own.length * 6.125}rem)`;
    if (!isMany) shelf.style.maxWidth = `${Math.max(own.length, 2) * 10}rem`;
    shelves.push(shelf);
  }
  byId("rack").replaceChildren(...shelves);
  byId("member-rows").replaceChildren(...devices.map((device) => {
    const cells = Array.from({ length: 10 }, (_, at) => make("td", at >= 1 && at <= 8 ? { class: "n" } : {}));
    return make("tr", {}, make("th", { scope: "row" }, device.name), ...cells);
  }));
}

function figures(row, device, rates, work) {
  const errors = device.errors;
  const number = (value) => (errors ? count(value) : "–");
  const oldest = device.oldest_request_ms;
  const filling = progress(device, work);
  const texts = [
    filling.what ? `${filling.what} ${percent(filling.done, filling.total)}` : look(device)[1],
    rate(rates.written),
    rate(rates.read),
    number(errors?.read),
    number(errors?.write),
    number(errors?.checksum),
    number(errors?.healed),
    oldest == null ? "–" : oldest < 1000 ? `${oldest} ms` : span(oldest / 1000),
    device.wear?.used_percent == null ? "–" : `${device.wear.used_percent} %`,
    device.path ?? "–",
  ];
  [...row.cells].slice(1).forEach((cell, at) => put(cell, texts[at]));
}

// `rates` says of each device what moved per second since the last look.
export function update(status, rates, remarks) {
  arrange(status.devices, status);
  const rows = byId("member-rows").rows;
  status.devices.forEach((device, at) => {
    const own = rates.get(device.name) ?? { read: 0, written: 0 };
    bays.get(device.name).update(device, own, status.work);
    figures(rows[at], device, own, status.work);
  });
  const list = byId("remarks");
  const key = remarks.join("\n");
  if (list.dataset.key !== key) {
    list.dataset.key = key;
    list.replaceChildren(...remarks.map((text) => make("li", {}, text)));
  }
  show(list, remarks.length > 0);
}
