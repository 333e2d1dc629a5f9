# The table of real-traces.sh from real.csv; exit code 1 if counts contradict each other.
#
# "WA": chunks of data written to the SSDs per chunk that users wrote; "all": parity too. "less": GC rewrites less than under
# elastic and, behind the slash, than under elastic-full (-cb: under those with cost-benefit; elastic-full has none).
function row(trace, shape, name, user, absorbed, rewritten, units, valid, short, wa, all, less,   line) {
  line = sprintf("%-22s %-4s %-13s %10s %9s %10s %7s %6s %6s %6s %6s %15s", trace, shape, name, user, absorbed, rewritten, units, valid, short, wa, all, less)
  sub(/ +$/, "", line)
  print line
}
# Share saved by `found` against the row `base`, in percent; nothing if there is no such row or it rewrites nothing.
function saved(key, base, found) {
  return (key, base) in rewritten && rewritten[key, base] > 0 ? 100 * (1 - found / rewritten[key, base]) : ""
}
function shown(share) { return share == "" ? "-" : sprintf("%.1f%%", share) }
function wrong(what) { print "real-traces.awk: line " NR ": " what > "/dev/stderr"; failed = 1 }
BEGIN { row("trace", "k+m", "row", "user", "absorbed", "rewritten", "units", "valid", "short", "WA", "all", "less") }
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
  row($1, $2, $3, $4, $5, $6, $7, $7 ? sprintf("%.0f%%", 100 * $6 / ($7 * 64 * count[1])) : "-", sprintf("%.0f%%", 100 * $11 / ($10 + $11)), sprintf("%.3f", $8 / $4), sprintf("%.3f", ($8 + $9) / $4), shown(less) " / " shown(full))
}
END { exit failed }
