#!/usr/bin/env bash
# WAS, figures 8 to 10: erases of the SSDs and response times under elastic (eSAP), was with 2 to 4 groups by
# GLRU (-str: over SSDs with a stream for each class, and for parity) and 2 by HCA, and sepbit. WAS's synthetic workload and
# stand-ins for its four traces (made here, from a seed), reads included, on eight simulated SSDs of the preset was-ssd with
# 256 MiB for chunks each , all their pages written before the array is made; 4 KiB chunks, units of 64 rows, collected
# from 90 % in use; RAID-5 (7+1) and RAID-6 (6+2, RDP).
#
# Rows run in two ways: "open", requests come at the times of the trace, so that chunks wait for each other by that clock
# , and, elastic and was by GLRU, "closed", 32 requests in flight. Requests are rounded to chunks. Beside the
# groups' own buffers there are 4 MiB for requests and what waits to be written: more would be a write cache that the paper
# has not.
#
#   scripts/experiments/was-grid.sh [--requests N] [--seed N] [--out DIR]
#
# Counts and virtual times depend on trace and seed alone, not on the machine. Full length takes an hour of processor time
# and 2 GiB of memory; `--requests` makes the traces shorter. Prints a table beside the paper's ranges (WAS, figures 8 to 10)
# and leaves it in DIR (default: target/experiments/was-grid) with results.csv and the JSON of every cell; cells that are
# there are not run again. A figure outside of the paper's range is said, no failure.
#
#   ELASTRIPE=target/release/elastripe
set -euo pipefail
options="[--requests N] [--seed N] [--out DIR]"
. "$(dirname "$0")/common.sh"

# Beside its chunks a member has 13 MiB of metadata.
common=(--ssd was-ssd --ssd-size 272MiB --device-size 256MiB --gc-unit 64 --gc-threshold 90% --prefill --buffers 4MiB --jobs 1)

folder() { echo "$out/$1-$2-$3${requests[1]:+-${requests[1]}}"; } # TRACE GEOMETRY ROW

# run TRACE GEOMETRY ROW OPTION...: the cells of a row, `timed` as $timed says.
run() {
  local trace=$1 geometry=$2 row=$3 code
  shift 3
  case $geometry in 7+1) code=xor ;; *) code=rdp ;; esac
  "$elastripe" simulate --trace "$file" --geometry "$geometry" --code $code "${common[@]}" --seed "$seed" "$@" \
    --sweep timed=$timed --out "$(folder "$trace" "$geometry" "$row")" >"$out/run.log" 2>&1 ||
    { cat "$out/run.log" >&2; echo "was-grid.sh: $trace at $geometry, row $row, failed" >&2; return 1; }
}

# lines TRACE GEOMETRY ROW: of results.csv. Rows swept by groups are named after them.
columns=user_chunks_written,ssd_chunks_written,gc_chunks_rewritten,metadata_bytes_written,ssd_pages_written,page_copies
columns+=,erases,erases_mean,erases_min,erases_max,latency_us_mean,latency_us_p50,latency_us_p99,latency_us_max
columns+=,requests_per_second,virtual_seconds
lines() {
  awk -F, -v OFS=, -v trace="$1" -v geometry="$2" -v row="$3" '
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; split(columns, wanted, ","); next }
    # An earlier run may have left those of another seed.
    $at["seed"] == seed {
      line = trace OFS geometry OFS row ("groups" in at ? "-" $at["groups"] : "") OFS ($at["timed"] == "on" ? "open" : "closed")
      for (i = 1; i in wanted; i++) line = line OFS $at[wanted[i]]
      print line }' columns=$columns seed="$seed" "$(folder "$1" "$2" "$3")/results.csv"
}

all=(was-synthetic fin online webmail online-webmail)
for timed in on off; do
  for trace in "${all[@]}"; do
    file=$traces/$trace.csv.zst
    length=("${requests[@]}")
    # The paper's length is the longest that means anything.
    [ "$trace" != was-synthetic ] || [ "${requests[1]:-0}" -lt 1000000 ] || length=()
    "$elastripe" trace generate --profile "$trace" "${length[@]}" --seed "$seed" "$file" >/dev/null
    if [ "$trace" = fin ]; then
      # Its 1 MiB segments are far apart and would not fit; the paper's tree of chunks does not see that.
      "$elastripe" trace convert "$file" "$traces/sparse.csv" >/dev/null
      awk -v reads=1 -f "$repo/scripts/experiments/dense.awk" "$traces/sparse.csv" "$traces/sparse.csv" >"$traces/fin.csv"
      rm "$file" "$traces/sparse.csv"
      file=$traces/fin.csv
    fi
    for geometry in 7+1 6+2; do
      run "$trace" $geometry elastic --scheme elastic
      run "$trace" $geometry was --scheme was --sweep groups=2,3,4
      [ $timed = on ] || continue
      run "$trace" $geometry was-2-str --scheme was --streams class
      run "$trace" $geometry was-2-hca --scheme was --hotness hca
      run "$trace" $geometry sepbit --scheme was --placement sepbit
    done
    rm "$file"
  done
done
{
  echo "trace,geometry,row,mode,$columns"
  for trace in "${all[@]}"; do
    for geometry in 7+1 6+2; do
      for row in elastic was was-2-str was-2-hca sepbit; do lines "$trace" $geometry $row; done
    done
  done
} >"$out/results.csv"
{
  echo "synthetic stand-ins, seed $seed, ${requests[1]:-all} requests; $("$elastripe" --version), $(nproc) CPUs"
  awk -F, -v short="$short" -f "$repo/scripts/experiments/was-grid.awk" "$out/results.csv"
} | tee "$out/table.txt"
# draw NAME MODE KEY: a plot for each geometry; none of what is zero everywhere.
draw() {
  local geometry
  for geometry in 7+1 6+2; do
    awk -F, -v geometry="$geometry" -v mode="$2" 'NR == 1 || ($2 == geometry && $4 == mode)' "$out/results.csv" >"$out/shown.csv"
    rm -f "$out/$1-$geometry.svg"
    if any "$out/shown.csv" "$3"; then
      "$elastripe" plot "$out/shown.csv" --x trace --y "$3" --series row --width page --out "$out/$1-$geometry.svg"
    else
      echo "no plot $1-$geometry.svg: $3 is 0 in every row"
    fi
    rm "$out/shown.csv"
  done
}
{
  draw erases open erases
  draw response closed latency_us_mean
} | tee -a "$out/table.txt"
