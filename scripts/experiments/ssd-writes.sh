#!/usr/bin/env bash
# EPLOG, experiment 1, and the log chunks of experiment 4a: what the schemes raid, parity-log and eplog write to the SSDs,
# and to the log devices, under stand-ins for the paper's traces (made here, from a seed) on arrays of null devices: all
# four at (6+2), FIN at the paper's four geometries. No cache, no commit, one request at a time.
#
#   scripts/experiments/ssd-writes.sh [--requests N] [--seed N] [--out DIR]
#
# Full length takes some 6 minutes and 4 GiB of memory; `--requests` makes the traces shorter. Counts depend on trace and
# seed alone, not on the machine. Prints one table beside the paper's ranges (EPLOG, experiments 1 and 4a) and leaves
# it in DIR (default: target/experiments/ssd-writes) with every replay's JSON, results.csv and two plots. Exit code 1 if a
# run fails or eplog and parity-log differ in what they write to the SSDs; a figure outside of the paper's range is said,
# no failure.
#
#   ELASTRIPE=target/release/elastripe  REPLAY_SECONDS_MAX=900
set -euo pipefail
options="[--requests N] [--seed N] [--out DIR]"
. "$(dirname "$0")/common.sh"

# total FILE KEY: a counter of the replay, which `fill` and each device have too.
total() {
  awk -v key="\"$2\":" '/^  "totals": \{/ { here = 1 } here && $1 == key { print $2 + 0; found = 1; exit }
                        END { exit !found }' "$1"
}

# count TRACE GEOMETRY: replays under each scheme; a line of results.csv.
count() {
  local line=$1,$2 scheme json key rewrites
  for scheme in raid parity-log eplog; do
    # The paper logs every update (section 3.2).
    case $scheme in eplog) rewrites=(--rewrites log) ;; *) rewrites=() ;; esac
    json=$out/$1-$2-$scheme.json
    timeout -k 5 "${REPLAY_SECONDS_MAX:-900}" "$elastripe" replay --trace "$traces/$1.csv.zst" --device null --geometry "$2" \
      --scheme "$scheme" "${rewrites[@]}" --compact --fill --writes-only --queue-depth 1 --json="$json" >"$out/replay.log" 2>&1 ||
      { cat "$out/replay.log" >&2; echo "ssd-writes.sh: replay of $1 at $2 under $scheme failed" >&2; return 1; }
    for key in data_chunks_written parity_chunks_written log_chunks_written; do
      line+=,$(total "$json" "$key")
    done
  done
  echo "$line" >>"$out/results.csv"
}

columns=trace,geometry
for scheme in raid parity-log eplog; do columns+=,$scheme-data,$scheme-parity,$scheme-log; done
echo "$columns" >"$out/results.csv"
for trace in fin web usr mds; do
  "$elastripe" trace generate --profile "$trace" "${requests[@]}" --seed "$seed" "$traces/$trace.csv.zst" >/dev/null
  case $trace in fin) geometries="4+1 6+1 4+2 6+2" ;; *) geometries=6+2 ;; esac
  for geometry in $geometries; do count "$trace" "$geometry"; done
  rm "$traces/$trace.csv.zst"
done

{
  echo "synthetic stand-ins, seed $seed, ${requests[1]:-all} requests; $("$elastripe" --version), $(nproc) CPUs"
  echo "chunks written to SSDs and log devices; ranges are those the paper prints, for the whole group"
  awk -F, -v short="$short" -f "$repo/scripts/experiments/ssd-writes.awk" "$out/results.csv"
} | tee "$out/table.txt"

# draw NAME OPTION...: a plot from plot.csv, in which everything is a share of what the scheme improved on writes.
draw() { "$elastripe" plot "$out/plot.csv" --x trace,geometry --series scheme --width page --out "$out/$1.svg" "${@:2}"; }

awk -F, 'NR == 1 { print "trace,geometry,scheme,ssd,log"; next }
  { raid = $3 + $4; log_chunks = $8
    printf "%s,%s,raid,100,\n", $1, $2
    printf "%s,%s,parity-log,%.3f,100\n", $1, $2, 100 * ($6 + $7) / raid
    printf "%s,%s,eplog,%.3f,%.3f\n", $1, $2, 100 * ($9 + $10) / raid, (log_chunks ? 100 * $11 / log_chunks : 0) }' "$out/results.csv" >"$out/plot.csv"
draw ssd-writes --y ssd --y-label "writes to SSDs (% of those of raid)" --band "43.0:54.4:eplog in the paper, k+2" \
  --band "60.1:61.4:eplog in the paper, k+1"
draw log-writes --y log --y-label "writes to log devices (% of those of parity-log)" --where scheme=parity-log,eplog \
  --band "85:92:eplog in the paper, FIN"
