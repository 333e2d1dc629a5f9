# The table of was-grid.sh from its results.csv; exit code 1 if counts contradict each other.
#
# "WA": chunks of data and parity written per chunk that users wrote. "GC share": part of these that garbage collection of the
# array wrote, parity included; no placement saves more of what the SSDs are given. "copies": pages that the SSDs' own GC
# copied. "pages/64": pages that users, collection, parity, metadata and these copies make, in blocks; erases differ from it by
# the blocks that were free at the start. "spread": most less least erases of an SSD, of the mean. "less": erases, and mean
# response time, below those of elastic, in percent, and what the paper has for two groups.
function row(trace, shape, name, mode, wa, rewritten, share, copies, erases, pages, spread, less, mean, p99, quick, papers,   line) {
  line = sprintf("%-14s %-4s %-9s %-6s %6s %10s %8s %9s %9s %9s %15s %6s %6s %9s %9s %6s  %s", trace, shape, name, mode, wa, rewritten, share, copies, erases, pages, spread[1], spread[2], less, mean, p99, quick, papers)
  sub(/ +$/, "", line)
  print line
}
# A run shorter than the paper's is no evidence for or against it.
function verdict(name, found, low, high) {
  if (found == "") return name " -"
  if (short != "") return sprintf("%s %.1f to %.1f less at full length", name, low, high)
  return sprintf("%s %.1f to %.1f: %s", name, low, high, found < low - 0.05 || found > high + 0.05 ? "outside" : "inside")
}
function saved(base, found) { return base > 0 ? 100 * (1 - found / base) : "" }
function shown(share) { return share == "" ? "-" : sprintf("%.1f", share) }
function wrong(what) { print "was-grid.awk: line " NR ": " what > "/dev/stderr"; failed = 1 }
BEGIN {
  spread[1] = "per SSD"; spread[2] = "spread"
  row("trace", "k+m", "row", "mode", "WA", "rewritten", "GC share", "copies", "erases", "pages/64", spread, "less", "mean us", "p99 us", "less", "paper")
}
NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
{
  key = $1 SUBSEP $2 SUBSEP $4
  split($2, count, "+")
  user = $at["user_chunks_written"]; ssd = $at["ssd_chunks_written"]; rewritten = $at["gc_chunks_rewritten"]
  pages = $at["ssd_pages_written"]; copies = $at["page_copies"]; erased = $at["erases"]
  if (pages != ssd + $at["metadata_bytes_written"] / 4096) wrong(pages " pages written, " ssd " chunks and metadata expected")
  # Full stripes: each data chunk brings m/k of parity; short ones bring more.
  share = ssd > 0 ? 100 * rewritten * (1 + count[2] / count[1]) / ssd : 0
  if ($3 == "elastic") { erases[key] = erased; mean[key] = $at["latency_us_mean"] }
  less = saved(erases[key], erased); quick = saved(mean[key], $at["latency_us_mean"])
  papers = "-"
  if ($3 == "was-2" && $2 == "7+1") papers = verdict("erases (WAS, fig. 9)", less, 22.9, 63.2) ", " verdict("time (fig. 8)", quick, 60.9, 79.3)
  if ($3 == "was-2" && $2 == "6+2") papers = verdict("erases (WAS, fig. 9)", less, 23.0, 61.8) ", " verdict("time (fig. 8)", quick, 56.8, 80.9)
  spread[1] = sprintf("%d to %d", $at["erases_min"], $at["erases_max"])
  spread[2] = $at["erases_mean"] > 0 ? sprintf("%.1f%%", 100 * ($at["erases_max"] - $at["erases_min"]) / $at["erases_mean"]) : "-"
  row($1, $2, $3, $4, user > 0 ? sprintf("%.3f", ssd / user) : "-", rewritten, sprintf("%.1f%%", share), copies, erased, sprintf("%.0f", (pages + copies) / 64), spread, $3 == "elastic" ? "" : shown(less), sprintf("%.1f", $at["latency_us_mean"]), sprintf("%.1f", $at["latency_us_p99"]), $3 == "elastic" ? "" : shown(quick), papers)
  if ($3 == "elastic" || $3 == "was-2") response[$2, $3, $4, $1] = $at["latency_us_mean"]
}
END {
  # The synthetic workload answers much more slowly than the others, under both.
  for (i in response) {
    split(i, part, SUBSEP)
    group = part[1] " " part[2] " " part[3]
    if (part[4] == "was-synthetic") own[group] = response[i]
    else if (!(group in slowest) || response[i] > slowest[group]) slowest[group] = response[i]
  }
  order = "7+1 elastic open,7+1 was-2 open,6+2 elastic open,6+2 was-2 open,7+1 elastic closed,7+1 was-2 closed,6+2 elastic closed,6+2 was-2 closed"
  split(order, groups, ",")
  for (i = 1; i in groups; i++) if (groups[i] in own && groups[i] in slowest)
    printf "mean response time, %s: synthetic %.1f us, the slowest other %.1f us (WAS, fig. 8: synthetic is much the slowest%s)\n", groups[i], own[groups[i]], slowest[groups[i]], (short != "" ? "" : own[groups[i]] > slowest[groups[i]] ? ": as the paper" : ": not as the paper")
  exit failed
}
