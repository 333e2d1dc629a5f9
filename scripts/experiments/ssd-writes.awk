# The table of ssd-writes.sh from its results.csv; exit code 1 if eplog and parity-log differ on the SSDs ("same").
#
# "form" is what the paper's own mean request size predicts: a request for c chunks at random alignment touches
# s = 1 + (c - 1) / k stripes, so eplog saves m s / (c + m s) of the SSD writes, and 1 - 1 / s of the log chunks if one log
# stripe takes the whole request.
function row(trace, shape, raid, logging, eplog, same, less, form, paper, raw, elastic, fewer, cut, chunks,   line) {
  line = sprintf("%-5s %-4s %11s %11s %11s %-6s %6s %6s  %-42s %11s %11s %6s %6s  %s", trace, shape, raid, logging, eplog, same, less, form, paper, raw, elastic, fewer, cut, chunks)
  sub(/ +$/, "", line)
  print line
}
function percent(share) { return sprintf("%.1f%%", 100 * share) }
# A run shorter than the paper's is no evidence for or against it.
function range(what, found, low, high,   off) {
  if (short != "") return sprintf("%s %.1f to %.1f at full length", what, low, high)
  off = found < low ? found - low : found > high ? found - high : 0
  return sprintf("%s %.1f to %.1f%s", what, low, high, off == 0 ? ", within" : sprintf(", %+.1f", off))
}
BEGIN {
  # EPLOG, table 2: mean write in KiB.
  split("fin 7.19 web 12.50 usr 10.05 mds 7.22", words, " ")
  for (i = 1; i in words; i += 2) mean[words[i]] = words[i + 1]
  row("trace", "k+m", "raid", "parity-log", "eplog", "same", "less", "form", "SSD writes saved (EPLOG, experiment 1)", "log p.-l.", "log eplog", "less", "form", "log chunks saved (EPLOG, experiment 4a)")
}
NR > 1 {
  split($2, count, "+"); k = count[1]; m = count[2]
  raid = $3 + $4; logging = $6 + $7; eplog = $9 + $10; raw = $8; elastic = $11
  saved = 100 * (1 - eplog / raid); fewer = 100 * (1 - elastic / raw)
  c = mean[$1] / 4; s = 1 + (c - 1) / k
  if (logging != eplog) unequal = 1
  paper = $2 == "6+2" ? range("four traces", saved, 45.6, 54.9) : m == 1 ? range("FIN, k+1", saved, 38.6, 39.9) : range("FIN, k+2", saved, 49.3, 57.0)
  # The paper gives the log chunks for FIN alone.
  chunks = $1 == "fin" ? range("FIN", fewer, 8, 15) : "-"
  row($1, $2, raid, logging, eplog, logging == eplog ? "equal" : "DIFFER", percent(saved / 100), percent(m * s / (c + m * s)), paper, raw, elastic, percent(fewer / 100), percent(1 - 1 / s), chunks)
  # FIN at (6+2) belongs to two groups.
  if ($1 == "fin" && $2 == "6+2") row("", "", "", "", "", "", "", "", range("FIN, k+2", saved, 49.3, 57.0))
}
END { exit unequal }
