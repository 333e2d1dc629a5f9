// Room and debt: how much is free, how full the log is, what waits for parity, what writing costs.

import { byId, count, make, mark, percent, put, show, size } from "./words.js";

class Gauge {
  constructor(title) {
    this.value = make("b", {});
    this.note = make("p", { class: "quiet" });
    this.fill = make("i", { class: "used" });
    this.limit = make("i", { class: "limit" });
    this.bar = make("div", { class: "long", role: "meter", "aria-label": title, "aria-valuemin": 0, "aria-valuemax": 100 },
      this.fill, this.limit);
    const head = make("p", { class: "what" }, make("span", {}, title), this.value);
    this.element = make("div", { class: "gauge" }, head, this.bar, this.note);
    byId("gauges").append(this.element);
  }

  // `share` of the bar is filled; without one there is no bar. `limit` is where a mark stands.
  update({ share, limit, value, note, alarm }) {
    put(this.value, value);
    put(this.note, note ?? "");
    show(this.note, Boolean(note));
    show(this.bar, share != null);
    if (share != null) {
      const filled = Math.min(100, Math.max(0, 100 * share));
      this.fill.style.width = `${filled}%`;
      mark(this.bar, "aria-valuenow", filled.toFixed(1));
      mark(this.bar, "aria-valuetext", value);
    }
    show(this.limit, limit != null);
    if (limit != null) this.limit.style.left = `${100 * limit}%`;
    this.element.classList.toggle("alarmed", Boolean(alarm));
  }
}

const gauges = new Map();

function gauge(name, title, state) {
  if (state == null) {
    if (gauges.has(name)) show(gauges.get(name).element, false);
    return;
  }
  if (!gauges.has(name)) gauges.set(name, new Gauge(title));
  show(gauges.get(name).element, true);
  gauges.get(name).update(state);
}

// Log-structured and logging schemes have room that comes and goes.
function free(status) {
  const space = status.space;
  if (!space || space.chunks_reserved === 0) return null;
  const used = space.chunk_count - space.chunks_free;
  const share = used / Math.max(space.chunk_count, 1);
  const bytes = space.chunks_free * status.chunk_bytes;
  const limit = 1 - space.chunks_reserved / Math.max(space.chunk_count, 1);
  return {
    share,
    limit: limit > 0 && limit < 1 ? limit : null,
    value: `${size(bytes)} free`,
    note: `${percent(used, space.chunk_count)} in use, parity and new versions counted in; `
      + "a full volume reaches the mark, what is beyond it is for new versions",
  };
}

function log(status) {
  const space = status.space;
  if (!space || space.log_blocks === 0) return null;
  const share = space.log_blocks_used / space.log_blocks;
  return {
    share,
    alarm: share > 0.9,
    value: `${percent(space.log_blocks_used, space.log_blocks)} full`,
    note: `${size(space.log_blocks_used * 4096)} of ${size(space.log_blocks * 4096)} on each log device`,
  };
}

function debt(status, ago) {
  const commit = status.commit;
  if (!commit || (status.log_count === 0 && commit.dirty_stripes === 0)) return null;
  const stripes = (number) => `${count(number)} ${number === 1 ? "stripe" : "stripes"}`;
  const change = ago == null ? "" : commit.dirty_stripes - ago;
  const trend = change === "" || change === 0 ? "" : `, ${change > 0 ? "+" : "−"}${count(Math.abs(change))} in a minute`;
  const stuck = commit.stuck_stripes > 0 ? `; ${stripes(commit.stuck_stripes)} cannot be committed` : "";
  const running = commit.running ? "; commit under way" : "";
  const paused = commit.paused ? "; commits are paused" : "";
  return {
    alarm: commit.stuck_stripes > 0,
    value: commit.dirty_stripes === 0 ? "none" : stripes(commit.dirty_stripes),
    note: commit.dirty_stripes === 0
      ? `parity is up to date; ${stripes(commit.stripes_committed)} committed since the start${paused}`
      : `covered by ${count(commit.log_stripes)} log stripes${trend}${running}${paused}${stuck}`,
  };
}

function collection(status) {
  const gc = status.gc;
  if (!gc) return null;
  const rows = gc.units * status.unit_rows;
  return {
    share: 1 - gc.rows_free / Math.max(rows, 1),
    value: `${percent(gc.rows_free, rows)} of the rows free`,
    note: `${count(gc.units_collected)} units collected, ${count(gc.chunks_rewritten)} chunks moved since the start`,
  };
}

// Bytes that went to members for one of a client's.
function amplification(status, minute) {
  const written = status.devices.reduce((sum, device) => sum + (device.traffic?.written_bytes ?? 0), 0);
  const asked = status.requests?.write.bytes ?? 0;
  if (asked === 0) return null;
  const lately = minute && minute.asked > 0 ? `${(minute.written / minute.asked).toFixed(2)} in the last minute` : null;
  return {
    value: lately ?? "idle",
    note: `${(written / asked).toFixed(2)} since the start, metadata counted in`,
  };
}

// `minute` is what clients asked to be written and what was written since a minute ago; `ago` the debt then.
export function update(status, minute, ago) {
  gauge("free", "Space on the SSDs", free(status));
  gauge("log", "Log", log(status));
  gauge("debt", "Waiting for parity", debt(status, ago));
  gauge("gc", "Garbage collection", collection(status));
  gauge("wa", "Written per byte of a client", amplification(status, minute));
  const memory = status.memory;
  const total = memory && memory.fixed_bytes + memory.dynamic_bytes + memory.placement_bytes;
  gauge("memory", "Memory of the maps", memory && { value: size(total) });
}
