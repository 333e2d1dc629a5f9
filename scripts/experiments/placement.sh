#!/usr/bin/env bash
# Placement of chunks in elastic stripes: what garbage collection (GC) at RAID level rewrites under elastic (eSAP), was and sepbit.
#
#   scripts/experiments/placement.sh [--requests N] [--seed N] [--out DIR] [--real DIR]
#
# Part one: figures 7 and 13 of WAS. Its synthetic workload and stand-ins for its four traces (made here, from a seed), in
# its set-up: 8 SSDs with 256 MiB for chunks each, units of 64 rows, threshold 90 %, as RAID-5 (7+1) and RAID-6 (6+2,
# RDP), beside the paper's ranges (WAS, figures 7 and 13).
#
# Part two, with --real: every trace of DIR (*.csv.zst in the common form; X_precond and X_exec are one) that is long enough
# to cause GC, on 6+2 devices (RDP) that its footprint, written beforehand, takes 77.5 % of. A trace under which elastic
# collects less than 16 units is left out, and named.
#
# Rows:
#   elastic       a stripe's chunks wait for each other, 200 ms of the trace at most; then it is written short
#   elastic-full  they wait until the stripe is full
#   elastic-unit  a unit's chunks wait: the buffer that was has for each of its groups
#   elastic-own   the same, and what is collected gets units of its own
#   was-N         N groups by GLRU, a unit's buffer each; -own: what is collected in units of its own; -hca: by HCA
#   sepbit        six classes, a unit's buffer each
#   *-cb          cost-benefit instead of greedy
# One request at a time, null devices. Counts depend on trace and seed alone, not on the machine. Full length takes 20
# to 40 minutes and 2 GiB of memory; `--requests` makes the synthetic traces shorter. The tables stay in DIR (default:
# target/experiments/placement) with every replay's JSON, results.csv, real.csv, and plots of part one. Exit code 1 if a run
# fails or its counts contradict each other; a figure outside of the paper's range is said, no failure.
#
#   ELASTRIPE=target/release/elastripe  REPLAY_SECONDS_MAX=900  GC_UNITS_MIN=16
set -euo pipefail
real=
own_option() {
  [ "$1" = --real ] || return 1
  real=$2
  [ -d "$real" ] || { echo "placement.sh: --real $real: no folder" >&2; exit 2; }
}
options="[--requests N] [--seed N] [--out DIR] [--real DIR]"
. "$(dirname "$0")/common.sh"

# count FILE SECTION KEY: a number of the replay's JSON. The sections of `fill` and of devices are indented deeper.
count() {
  awk -v section="\"$2\":" -v key="\"$3\":" '/^  "/ { here = $1 == section } here && $1 == key { print $2 + 0; found = 1; exit }
                                            END { exit !found }' "$1"
}

# options ROW UNIT: those of a row, where UNIT is the number of chunks of a unit.
options() {
  case $1 in
    *-cb) options "${1%-cb}" "$2"; echo --gc cost-benefit ;;
    elastic) echo --scheme elastic ;;
    elastic-full) echo --scheme elastic --p-wait never ;;
    elastic-unit) echo --scheme elastic --p-wait never --group-chunks "$2" ;;
    elastic-own) echo --scheme elastic --p-wait never --group-chunks "$2" --gc-group own ;;
    was-[234]) echo --scheme was --groups "${1#was-}" ;;
    was-2-own) echo --scheme was --gc-group own ;;
    was-2-hca) echo --scheme was --hotness hca ;;
    was-2-hca-own) echo --scheme was --hotness hca --gc-group own ;;
    sepbit) echo --scheme was --placement sepbit ;;
  esac
}

# replay NAME GEOMETRY ROW OPTION...: prints a line of results.
replay() {
  local name=$1 geometry=$2 row=$3 json=$out/$1-$2-$3.json line=$1,$2,$3 key
  shift 3
  # shellcheck disable=SC2046
  timeout -k 5 "${REPLAY_SECONDS_MAX:-900}" "$elastripe" replay --device null --geometry "$geometry" --compact --writes-only \
    --queue-depth 1 --seed "$seed" --gc-unit 64 $(options "$row" $((64 * ${geometry%+*}))) "$@" --json="$json" \
    >"$out/replay.log" 2>&1 ||
    { cat "$out/replay.log" >&2; echo "placement.sh: replay of $name at $geometry, row $row, failed" >&2; return 1; }
  for key in totals.user_chunks_written cache.absorbed_chunks gc.chunks_rewritten gc.units_collected \
    totals.data_chunks_written totals.parity_chunks_written stripes.full stripes.short; do
    line+=,$(count "$json" "${key%.*}" "${key#*.}")
  done
  echo "$line"
}

columns=trace,geometry,row,user,absorbed,rewritten,units,data,parity,full,short
table() { # TITLE RESULTS
  echo "$1; $("$elastripe" --version), $(nproc) CPUs"
  awk -F, -v short="$short" -f "$repo/scripts/experiments/placement.awk" "$2"
}

papers() {
  local name trace geometry code row
  for name in was-synthetic fin online webmail online-webmail; do
    trace=$traces/$name.csv.zst
    "$elastripe" trace generate --profile "$name" "${requests[@]}" --seed "$seed" "$trace" >/dev/null
    if [ $name = fin ]; then
      # Its 1 MiB segments are far apart and would not fit; the paper's tree of chunks does not see that.
      "$elastripe" trace convert "$trace" "$traces/sparse.csv" >/dev/null
      awk -f "$repo/scripts/experiments/dense.awk" "$traces/sparse.csv" "$traces/sparse.csv" >"$traces/$name.csv"
      rm "$trace" "$traces/sparse.csv"
      trace=$traces/$name.csv
    fi
    for geometry in 7+1 6+2; do
      case $geometry in 7+1) code=xor ;; *) code=rdp ;; esac
      for row in elastic elastic-full elastic-unit elastic-own was-2 was-3 was-4 was-2-own was-2-hca was-2-hca-own sepbit \
        elastic-cb was-2-cb sepbit-cb; do
        replay $name $geometry $row --trace "$trace" --code $code --device-size 256MiB
      done
    done
    rm "$trace"
  done
}

# measure NAME FILE...: sets `size`, the device size for a trace; empty, and the reason in left-out.txt, if it is left out.
measure() {
  local name=$1 segments rows units file named=()
  shift
  for file; do named+=(--trace "$file"); done
  "$elastripe" trace info --json "$@" >"$traces/info.json"
  segments=$(awk '$1 == "\"segments_touched\":" { print $2 + 0 }' "$traces/info.json")
  rows=$(((segments * 256 * 1000 / (775 * 6) + 63) / 64 * 64))
  size=
  if [ $((rows / 64)) -lt 88 ]; then
    echo "$name: $segments MiB are $((rows / 64)) units of 64 rows; collection wants 88 of them to work" >>"$out/left-out.txt"
    return
  fi
  replay "$name" 6+2 elastic "${named[@]}" --code rdp --device-size $((rows * 4))KiB --fill >"$traces/line"
  units=$(cut -d, -f7 "$traces/line")
  if [ "$units" -lt "${GC_UNITS_MIN:-16}" ]; then
    echo "$name: $units units collected, of $((rows / 64))" >>"$out/left-out.txt"
    return
  fi
  size=$((rows * 4))KiB
}

real_traces() {
  local file files name size row named
  for file in "$real"/*.csv.zst; do
    files=("$file")
    case $file in
      *_exec.csv.zst) [ ! -e "${file/%_exec.csv.zst/_precond.csv.zst}" ] || continue ;;
      *_precond.csv.zst)
        file=${file/%_precond.csv.zst/_exec.csv.zst}
        [ ! -e "$file" ] || files+=("$file") ;;
      *_stats.csv.zst) continue ;;
    esac
    name=$(basename "${files[0]}" .csv.zst)
    [ ${#files[@]} -eq 1 ] || name=${name%_precond}
    measure "$name" "${files[@]}"
    [ -n "$size" ] || continue
    cat "$traces/line"
    named=()
    for file in "${files[@]}"; do named+=(--trace "$file"); done
    for row in elastic-full elastic-unit elastic-own was-2 sepbit elastic-cb was-2-cb sepbit-cb; do
      replay "$name" 6+2 $row "${named[@]}" --code rdp --device-size "$size" --fill
    done
  done
}

{ echo $columns; papers; } >"$out/results.csv"
table "synthetic stand-ins, seed $seed, ${requests[1]:-all} requests" "$out/results.csv" | tee "$out/table.txt"
awk -F, 'NR == 1 { print "trace,geometry,placement,rewritten"; next } { printf "%s,%s,%s,%.6f\n", $1, $2, $3, $6 / $4 }' \
  "$out/results.csv" >"$out/plot.csv"
for geometry in 7+1 6+2; do
  "$elastripe" plot "$out/plot.csv" --x trace --y rewritten --series placement --where "geometry=$geometry" \
    --where placement=elastic,elastic-own,was-2,was-2-own,was-2-hca,sepbit --width page \
    --y-label "rewritten by GC (chunks per chunk of users)" --out "$out/rewritten-$geometry.svg"
done
if [ -n "$real" ]; then
  : >"$out/left-out.txt"
  { echo $columns; real_traces; } >"$out/real.csv"
  { echo; table "real traces, the footprint written first" "$out/real.csv"; echo "left out:"; cat "$out/left-out.txt"; } |
    tee -a "$out/table.txt"
fi
