// Numbers and moments in words, as `elastripe status` writes them, and elements made of text alone: whatever the
// server says can name a file, and is never taken for markup.

const BINARY = [["PiB", 2 ** 50], ["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];

// Three digits that mean something.
function three(value) {
  if (value >= 100) return value.toFixed(0);
  return value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

export function size(bytes) {
  const unit = BINARY.find(([, factor]) => bytes >= factor);
  return unit ? `${three(bytes / unit[1])} ${unit[0]}` : `${Math.round(bytes)} B`;
}

export const rate = (bytes) => `${size(bytes)}/s`;

export function count(number) {
  const whole = number >= 100 || Number.isInteger(number);
  return (whole ? Math.round(number) : Number(number.toFixed(1))).toLocaleString("en-US");
}

export const percent = (part, whole) => `${((100 * part) / Math.max(whole, 1)).toFixed(1)} %`;

// A bound of waiting time: classes are powers of two of a microsecond.
export function wait(us) {
  if (us == null) return "more than 8 s";
  if (us < 1000) return `${us} µs`;
  return us < 1e6 ? `${three(us / 1000)} ms` : `${three(us / 1e6)} s`;
}

export function span(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor(s / 60) % 60} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s / 3600) % 24} h`;
}

const pad = (number) => String(number).padStart(2, "0");

// The time of day where the page is looked at; with the date if that is another day.
export function moment(ms) {
  const at = new Date(ms);
  const time = `${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}`;
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())} ${time}`;
}

export const byId = (id) => document.getElementById(id);

// An element with attributes, and with texts and elements inside.
export function make(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function draw(name, attributes = {}, ...inside) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...inside);
  return made;
}

export const sign = (name) =>
  draw("svg", { class: "sign", "aria-hidden": "true" }, draw("use", { href: `#g-${name}` }));

// Touches the page only if something changes, so that nobody who reads it is disturbed.
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}

export function show(element, is) {
  if (element.hidden === is) element.hidden = !is;
}
