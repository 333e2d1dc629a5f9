# The writes of a trace in the common form, without the chunks (of 4 KiB) that no write touches: `awk -f dense.awk T T`.
# Chunks keep their order, so what was sequential stays so. With `-v reads=1` reads count as writes do.
BEGIN { FS = OFS = "," }
FNR == 1 { pass++; if (pass == 2) for (chunk = 0; chunk <= last; chunk++) if (chunk in written) at[chunk] = count++ }
$1 !~ /^[0-9]+$/ { if (pass == 2) print; next }
$3 != "W" && !(reads && $3 == "R") { next }
{ first = int($4 / 4096); end = int(($4 + $5 - 1) / 4096) }
pass == 1 { for (chunk = first; chunk <= end; chunk++) written[chunk]; if (end > last) last = end; next }
{ $4 = sprintf("%.0f", at[first] * 4096 + $4 % 4096); print }
