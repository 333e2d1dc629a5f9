# How many stripes of k data chunks the writes of a trace touch in each interval of `every` writes, distinct ones, summed over
# the whole intervals; the rest at the end is left out. A commit of parity after each interval writes so many times m chunks.
#
#   awk -v every=1000 -v k=6 -f commit-stripes.awk TRACE TRACE
#
# The trace in the common form, 4 KiB chunks, prepared as by --compact --writes-only: 1 MiB segments that nothing touches are
# dropped, the others shifted together.
BEGIN { FS = "," }
FNR == 1 { pass++; if (pass == 2) for (segment = 0; segment <= last; segment++) if (segment in touched) at[segment] = count++ * 256 }
$1 !~ /^[0-9]+$/ || $3 !~ /^[RW]$/ || $5 == 0 { next }
pass == 1 {
  end = int(($4 + $5 - 1) / 1048576)
  for (segment = int($4 / 1048576); segment <= end; segment++) touched[segment]
  if (end > last) last = end
  next
}
$3 != "W" { next }
{
  end = int(($4 + $5 - 1) / 4096)
  for (chunk = int($4 / 4096); chunk <= end; chunk++) {
    stripe = int((at[int(chunk / 256)] + chunk % 256) / k)
    if (!(stripe in seen) || seen[stripe] != interval) { seen[stripe] = interval; distinct++ }
  }
  if (++writes == every) { sum += distinct; distinct = writes = 0; interval++ }
}
END { printf "%.0f\n", sum }
