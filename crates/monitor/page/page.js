// The page's one connection to the server, and what is done with what comes: nothing is shown as present that is
// not, and nothing is asked while nobody looks.

import * as clients from "./clients.js";
import * as gauges from "./gauges.js";
import * as members from "./members.js";
import { byId, count, make, mark, moment, percent, put, show, sign, size, span } from "./words.js";

// News come every second; after so long without any the figures are old.
const LATE_MS = 3500;
// How soon a connection that the server refused is tried again.
const AGAIN_MS = 3000;
// A page that nobody has looked at for so long asks for nothing.
const ASLEEP_MS = 300000;

const page = {
  source: null,
  // The newest news, and when they came.
  news: null,
  came: 0,
  // When those came whose figures are shown.
  shown: 0,
  // Since when, and why, there are none.
  lost: null,
  why: "",
  isHeld: false,
  // A second each: what clients did, and totals.
  history: [],
  totals: [],
};

function connect() {
  page.source?.close();
  const source = new EventSource("events");
  page.source = source;
  source.onmessage = (message) => hear(JSON.parse(message.data));
  source.onerror = () => {
    lose("the server does not answer");
    // The browser tries again by itself unless it was told no.
    if (source.readyState === EventSource.CLOSED && page.source === source) {
      ask().then((why) => lose(why));
      setTimeout(() => page.source === source && connect(), AGAIN_MS);
    }
  };
}

// Why the server refuses.
async function ask() {
  try {
    const answer = await fetch("events", { signal: AbortSignal.timeout(2000) });
    return answer.ok ? "" : (await answer.text()).trim();
  } catch {
    return "the server does not answer";
  }
}

function hear(news) {
  if (news.trouble) {
    lose(news.trouble);
    return;
  }
  const wasLost = page.lost !== null && page.news !== null;
  if (wasLost) say("Connected again.");
  remember(news);
  page.news = news;
  page.came = Date.now();
  page.lost = null;
  page.why = "";
  band();
  if (!page.isHeld) figures();
  link();
}

function lose(why) {
  page.why = why || page.why;
  if (page.lost !== null) return link();
  page.lost = page.came || Date.now();
  // What is not known is no line of a curve.
  page.history.push(null);
  link();
}

function total(status) {
  return {
    written: status.devices.reduce((sum, device) => sum + (device.traffic?.written_bytes ?? 0), 0),
    asked: status.requests?.write.bytes ?? 0,
    dirty: status.commit?.dirty_stripes ?? 0,
  };
}

function remember(news) {
  const then = page.news;
  const isSame = then && then.status.uuid === news.status.uuid
    && then.status.activity?.seconds <= news.status.activity?.seconds;
  const seconds = isSame ? (news.unix_ms - then.unix_ms) / 1000 : 0;
  if (!isSame) [page.history, page.totals] = [[], []];
  // Seconds in which nothing was heard are empty.
  for (let gap = Math.round(seconds) - 1; gap > 0 && page.lost !== null; gap--) page.history.push(null);
  page.lately = seconds > 0.2 ? clients.difference(news.status.requests, then.status.requests, seconds) : null;
  page.rates = seconds > 0.2 ? moved(news.status.devices, then.status.devices, seconds) : new Map();
  page.history.push(page.lately);
  page.history.splice(0, page.history.length - clients.SECONDS);
  page.totals.push({ ...total(news.status), unix_ms: news.unix_ms });
  page.totals = page.totals.filter((one) => news.unix_ms - one.unix_ms <= 61000);
}

// What each device read and wrote per second.
function moved(now, then, seconds) {
  const before = new Map(then.map((device) => [device.name, device.traffic]));
  return new Map(now.map((device) => {
    const [a, b] = [before.get(device.name), device.traffic];
    const per = (key) => (a && b ? Math.max(0, b[key] - a[key]) / seconds : 0);
    return [device.name, { read: per("read_bytes"), written: per("written_bytes") }];
  }));
}

// To those who listen rather than look.
function say(text) {
  put(byId("said"), text);
}

const SIGNS = { healthy: "healthy", degraded: "degraded", suspended: "suspended", lost: "lost", failed: "failed" };

function row(label) {
  return page.news.rows.find(([name]) => name === label)?.[1];
}

// What is never held back: how the array is.
function band() {
  const { status, lately } = page.news;
  put(byId("name"), status.name || "array without a name");
  put(byId("uuid"), status.uuid);
  put(byId("version"), page.news.version);
  mark(document.body, "data-state", status.state);
  mark(byId("state-sign"), "href", `#g-${SIGNS[status.state] ?? "unknown"}`);
  put(byId("meaning"), row("meaning") ?? "");
  const action = row("action");
  show(byId("action"), Boolean(action));
  const words = byId("action").lastElementChild;
  words.classList.toggle("command", (action ?? "").startsWith("elastripe "));
  put(words, action ?? "");
  announce(status, lately);
}

function figures() {
  const { status, rows, remarks, lately } = page.news;
  page.shown = page.came;
  put(byId("shape"), row("shape")?.split(";")[0] ?? "");
  members.update(status, page.rates, remarks);
  work(status.work);
  clients.tell(page.lately, status.clients);
  clients.curves(page.history);
  const [first, last] = [page.totals[0], page.totals.at(-1)];
  const minute = { written: last.written - first.written, asked: last.asked - first.asked };
  gauges.update(status, minute, page.totals.length > 50 ? first.dirty : null);
  losses(status.lost);
  happened(lately);
  list(rows);
}

function work(now) {
  const bar = byId("work-bar");
  show(bar, Boolean(now));
  mark(byId("work"), "data-at-work", now ? now.kind : "no");
  put(byId("work-words"), row("work") === "none" ? "Neither is under way." : row("work"));
  put(byId("scrub-words"), `Last scrub: ${row("scrub")}`);
  if (!now) return;
  const done = (100 * now.done) / Math.max(now.total, 1);
  bar.firstElementChild.style.width = `${done}%`;
  mark(bar, "aria-label", now.kind);
  mark(bar, "aria-valuenow", done.toFixed(1));
  mark(bar, "aria-valuetext", percent(now.done, now.total));
}

function losses(lost) {
  show(byId("lost"), Boolean(lost));
  if (!lost) return;
  put(byId("lost-words"), `${count(lost.chunks)} chunks, ${size(lost.bytes)} of the volume`);
  const key = JSON.stringify(lost.ranges);
  const body = byId("lost-rows");
  if (body.dataset.key !== key) {
    body.dataset.key = key;
    body.replaceChildren(...lost.ranges.map(({ offset_bytes: from, length_bytes: length }) => {
      const cells = [from, length, from / 512, length / 512];
      return make("tr", {}, ...cells.map((cell) => make("td", { class: "n" }, String(cell))));
    }));
  }
  const more = lost.ranges_omitted > 0 ? `${count(lost.ranges_omitted)} ranges more: elastripe status --verbose. ` : "";
  const known = lost.is_complete ? "" : "Not everything was looked at since the start.";
  put(byId("lost-more"), more + known);
}

const LEVELS = { info: ["spare", "note"], warning: ["degraded", "warning"], error: ["failed", "error"] };

function happened(lately) {
  const list = byId("events");
  const key = `${lately.length} ${lately.at(-1)?.unix_ms} ${lately.at(-1)?.message}`;
  if (list.dataset.key === key) return;
  list.dataset.key = key;
  list.replaceChildren(...[...lately].reverse().map((one) => {
    const [symbol, word] = LEVELS[one.level] ?? LEVELS.info;
    const at = new Date(one.unix_ms).toISOString();
    return make("li", { "data-level": one.level },
      make("time", { datetime: at, title: at }, moment(one.unix_ms)),
      make("span", { class: "level" }, sign(symbol), make("span", { class: "unseen" }, `${word}: `)),
      make("span", {}, one.message));
  }));
}

function list(rows) {
  const own = byId("rows");
  const key = rows.map(([name]) => name).join();
  if (own.dataset.key !== key) {
    own.dataset.key = key;
    own.replaceChildren(...rows.flatMap(([name]) => [make("dt", {}, name), make("dd", {})]));
  }
  const places = own.querySelectorAll("dd");
  rows.forEach(([, text], at) => put(places[at], text));
}

let announced = null;

// What changes, once: the state, and what happened.
function announce(status, lately) {
  const newest = lately.at(-1);
  const now = { state: status.state, newest: newest ? `${newest.unix_ms} ${newest.message}` : "" };
  if (announced) {
    const parts = [];
    if (announced.state !== now.state) parts.push(`The array is ${now.state}.`);
    if (announced.newest !== now.newest) parts.push(`${newest.message}.`);
    if (parts.length > 0) say(parts.join(" "));
  }
  announced = now;
}

// Whether what is shown is so now; looked at on news, on their absence and twice a second.
function link() {
  const now = Date.now();
  if (page.lost === null && page.came > 0 && now - page.came > LATE_MS) {
    page.why = "the server has said nothing";
    page.lost = page.came;
  }
  const isLost = page.lost !== null;
  const kind = isLost ? "lost" : page.news === null ? "waiting" : page.isHeld ? "held" : "live";
  mark(document.body, "data-link", kind);
  const held = `figures of ${moment(page.shown)}`;
  const words = { lost: "no connection", waiting: "connecting", held, live: "live" };
  put(byId("link"), words[kind]);
  const state = page.news ? page.news.status.state.toUpperCase() : "";
  const old = page.news !== null && isLost;
  put(byId("state-word"), page.news === null ? "Nothing is known yet" : old ? `Was ${state} at ${moment(page.came)}` : state);
  if (isLost) {
    const since = page.came > 0 ? ` since ${moment(page.lost)}` : "";
    put(byId("alarm-words"), `No connection${since}: ${page.why}.`);
    put(byId("alarm-rest"), page.came > 0 ? "Everything below is as it was then," : "Nothing is known of the array.");
    put(byId("ago"), page.came > 0 ? `${span((now - page.came) / 1000)} ago.` : "");
  } else {
    put(byId("alarm-words"), "");
  }
  show(byId("alarm"), isLost);
  const name = page.news?.status.name || "elastripe";
  document.title = isLost ? `no connection – ${name}` : page.news ? `${state} – ${name}` : "elastripe";
}

function hold() {
  page.isHeld = !page.isHeld;
  mark(byId("hold"), "aria-pressed", page.isHeld);
  if (!page.isHeld && page.news) figures();
  link();
}

let asleep = 0;

function looked() {
  clearTimeout(asleep);
  if (document.hidden) {
    asleep = setTimeout(() => {
      page.source?.close();
      page.source = null;
      lose("nobody looked at this page");
    }, ASLEEP_MS);
  } else if (page.source === null) {
    connect();
  }
}

byId("hold").addEventListener("click", hold);
document.addEventListener("visibilitychange", looked);
byId("all-words").open = matchMedia("(min-width: 60rem)").matches;
setInterval(link, 500);
connect();
