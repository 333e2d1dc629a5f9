# The table of placement.sh from results.csv or real.csv; exit code 1 if counts contradict each other.
#
# "WA": chunks of data written to the SSDs per chunk that users wrote; "all": parity too. "less": GC rewrites less than under
# elastic and, behind the slash, than under elastic-full (-cb: under those with cost-benefit; elastic-full has none). "paper": its range,
# and how far each of the two is outside of it.
function row(trace, shape, name, user, absorbed, rewritten, units, valid, short, wa, all, less, paper,   line) {
  line = sprintf("%-22s %-4s %-13s %10s %9s %10s %7s %6s %6s %6s %6s %15s  %s", trace, shape, name, user, absorbed, rewritten, units, valid, short, wa, all, less, paper)
  sub(/ +$/, "", line)
  print line
}
# Share saved by `found` against the row `base`, in percent; nothing if there is no such row or it rewrites nothing.
function saved(key, base, found) {
  return (key, base) in rewritten && rewritten[key, base] > 0 ? 100 * (1 - found / rewritten[key, base]) : ""
}
function shown(share) { return share == "" ? "-" : sprintf("%.1f%%", share) }
# A run shorter than the paper's is no evidence for or against it.
function outside(found, low, high) {
  return short != "" ? "-" : found == "" ? "-" : found < low - 0.05 ? sprintf("%+.1f", found - low) : found > high + 0.05 ? sprintf("%+.1f", found - high) : "within"
}
function paper(trace, shape, name, key, less, full,   other) {
  if (trace !~ /^(was-synthetic|fin|online|webmail|online-webmail)$/) return "-"
  if (name == "was-2" && shape == "6+2") return sprintf("WAS, fig. 7, RAID-6: 23.9 to 63.2 less: %s / %s", outside(less, 23.9, 63.2), outside(full, 23.9, 63.2))
  if (name == "was-2" && trace == "fin") return sprintf("WAS, fig. 7, Financial1: 70.6 less: %s / %s", outside(less, 70.6, 70.6), outside(full, 70.6, 70.6))
  if (name == "was-2") return sprintf("WAS, fig. 7, RAID-5: 30.0 to 43.2 less: %s / %s", outside(less, 30.0, 43.2), outside(full, 30.0, 43.2))
  # Against was-2, which comes first.
  if (name ~ /^was-[34]$/) return sprintf("WAS, fig. 7, more groups: hardly less: %s less than was-2", shown(saved(key, "was-2", rewritten[key, name])))
  if (name == "was-2-hca") {
    other = saved(key, "was-2-hca", rewritten[key, "was-2"])
    return sprintf("WAS, fig. 13, GLRU 0 to 16.7 less than HCA: %s, %s", shown(other), outside(other, 0, 16.7))
  }
  return "-"
}
function wrong(what) { print "placement.awk: line " NR ": " what > "/dev/stderr"; failed = 1 }
BEGIN { row("trace", "k+m", "row", "user", "absorbed", "rewritten", "units", "valid", "short", "WA", "all", "less", "paper") }
NR > 1 {
  key = $1 SUBSEP $2
  split($2, count, "+")
  rewritten[key, $3] = $6
  # What is written is what users wrote, less what was overwritten in memory, and what was collected.
  if ($8 != $4 - $5 + $6) wrong($8 " data chunks written, " $4 " - " $5 " + " $6 " expected")
  if ($9 != count[2] * ($10 + $11)) wrong($9 " parity chunks written, " count[2] " for each of " $10 " + " $11 " stripes expected")
  if ($8 > count[1] * ($10 + $11)) wrong($8 " data chunks do not fit " $10 " + " $11 " stripes")
  base = $3 ~ /-cb$/ ? "elastic-cb" : "elastic"
  less = saved(key, base, $6)
  full = $3 ~ /-cb$/ ? "" : saved(key, "elastic-full", $6)
  row($1, $2, $3, $4, $5, $6, $7, $7 ? sprintf("%.0f%%", 100 * $6 / ($7 * 64 * count[1])) : "-", sprintf("%.0f%%", 100 * $11 / ($10 + $11)), sprintf("%.3f", $8 / $4), sprintf("%.3f", ($8 + $9) / $4), shown(less) " / " shown(full), paper($1, $2, $3, key, less, full))
}
END { exit failed }
