// What clients do: the last second in figures, the last two minutes as curves.

import { byId, count, draw, make, put, rate, wait } from "./words.js";

export const SECONDS = 120;
const KINDS = [["read", "reads"], ["write", "writes"], ["flush", "flushes"], ["discard", "discards"]];
const WIDTH = 600;
const HEIGHT = 100;
// Classes of waiting time: up to 1, 2, 4 .. 2^23 us, and longer.
const CLASSES = 25;

// The bound that so large a share of the requests kept; null if that is more than the last class but one.
export function within(classes, share) {
  const all = classes.reduce((sum, one) => sum + one, 0);
  let seen = 0;
  for (let at = 0; at < classes.length - 1; at++) {
    seen += classes[at];
    if (seen >= all * share) return 2 ** at;
  }
  return null;
}

// What came to a kind of request since the last look, per second.
function since(now, then, seconds) {
  const classes = now.by_wait_us.map((value, at) => Math.max(0, value - (then.by_wait_us[at] ?? 0)));
  const requests = classes.reduce((sum, one) => sum + one, 0);
  return {
    requests: requests / seconds,
    bytes: Math.max(0, now.bytes - then.bytes) / seconds,
    errors: Math.max(0, now.errors - then.errors),
    half: requests > 0 ? within(classes, 0.5) : undefined,
    most: requests > 0 ? within(classes, 0.99) : undefined,
  };
}

export function difference(now, then, seconds) {
  if (!now || !then) return null;
  return Object.fromEntries(KINDS.map(([kind]) => [kind, since(now[kind], then[kind], seconds)]));
}

const rows = new Map();

export function tell(lately, clients) {
  if (rows.size === 0) {
    for (const [kind, name] of KINDS) {
      const cells = Array.from({ length: 5 }, () => make("td", { class: "n" }, "–"));
      const row = make("tr", {}, make("th", { scope: "row" }, name), ...cells);
      rows.set(kind, cells);
      byId("client-rows").append(row);
    }
  }
  const connected = clients === 1 ? "1 client is connected" : `${count(clients ?? 0)} clients are connected`;
  put(byId("clients-count"), connected);
  for (const [kind] of KINDS) {
    const one = lately?.[kind];
    const bound = (us) => (us === undefined ? "–" : wait(us));
    const data = kind === "flush" ? "–" : one && rate(one.bytes);
    const texts = one
      ? [count(one.requests), data, bound(one.half), bound(one.most), count(one.errors)]
      : Array(5).fill("–");
    rows.get(kind).forEach((cell, at) => put(cell, texts[at]));
    rows.get(kind)[4].classList.toggle("wrong", Boolean(one && one.errors > 0));
  }
}

// 1, 2, 4 or 8 .. of a unit: the least that is not less.
function ceiling(value) {
  return 2 ** Math.ceil(Math.log2(Math.max(value, 4096)));
}

class Chart {
  constructor(place, about) {
    this.top = make("span", { class: "top" });
    this.middle = make("span", { class: "middle" });
    this.read = draw("path", { class: "r" });
    this.area = draw("path", { class: "area" });
    this.written = draw("path", { class: "w" });
    const grid = [0.5, HEIGHT / 2, HEIGHT - 0.5].map((y) => `M0 ${y}H${WIDTH}`).join("");
    const size = { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" };
    this.picture = draw("svg", size, draw("path", { class: "grid", d: grid }), this.area, this.written, this.read);
    const axis = make("p", { class: "axis", "aria-hidden": "true" },
      make("span", {}, "2 min ago"), make("span", {}, "1 min"), make("span", {}, "now"));
    this.words = make("p", { class: "unseen" });
    place.append(make("div", { class: "frame" }, this.picture, this.top, this.middle), axis, this.words);
    this.about = about;
  }

  // A curve of pieces: where nothing is known there is none.
  path(values, scale, isArea) {
    let text = "";
    let open = false;
    const step = WIDTH / (SECONDS - 1);
    values.forEach((value, at) => {
      const x = (WIDTH - (values.length - 1 - at) * step).toFixed(1);
      if (value == null) {
        if (open && isArea) text += `V${HEIGHT}Z`;
        open = false;
        return;
      }
      const y = (HEIGHT - 0.5 - (HEIGHT - 1) * Math.min(1, Math.max(0, scale(value)))).toFixed(1);
      if (open) text += `L${x} ${y}`;
      else text += isArea ? `M${x} ${HEIGHT}V${y}` : `M${x} ${y}h.1`;
      open = true;
    });
    return open && isArea ? `${text}V${HEIGHT}Z` : text;
  }

  update(written, read, scale, top, middle) {
    this.written.setAttribute("d", this.path(written, scale, false));
    this.area.setAttribute("d", this.path(written, scale, true));
    this.read.setAttribute("d", this.path(read, scale, false));
    put(this.top, top);
    put(this.middle, middle);
    put(this.words, this.about);
  }
}

let bytes;
let waits;

// The last two minutes, a second each; `null` where nothing is known.
export function curves(history) {
  bytes ??= new Chart(byId("chart-bytes"), "A curve of the last two minutes; the table above has the last second.");
  waits ??= new Chart(byId("chart-wait"), "A curve of the last two minutes; the table above has the last second.");
  const of = (kind, figure) => history.map((one) => one?.[kind]?.[figure] ?? null);
  const [written, read] = [of("write", "bytes"), of("read", "bytes")];
  const most = ceiling(Math.max(...written, ...read));
  bytes.update(written, read, (value) => value / most, rate(most), rate(most / 2));
  // Each class is as far from the next; what took longest is at the top.
  const bound = (kind) => history.map((one) => {
    const us = one?.[kind]?.most;
    return us === undefined ? null : (us ?? 2 ** (CLASSES - 1));
  });
  const scale = (us) => Math.log2(us) / (CLASSES - 1);
  waits.update(bound("write"), bound("read"), scale, "over 8 s", wait(2 ** 12));
}
