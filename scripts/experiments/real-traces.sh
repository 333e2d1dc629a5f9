#!/usr/bin/env bash
# Placement of chunks in elastic stripes on the traces of a folder: what garbage collection (GC) at RAID level rewrites under
# elastic (eSAP), was and sepbit. The papers' own loads: `elastripe lab run X-16`.
#
#   scripts/experiments/real-traces.sh DIR [--seed N] [--out DIR]
#
# Every trace of DIR (*.csv.zst in the common form; X_precond and X_exec are one) that is long enough to cause GC, on 6+2
# devices (RDP) that its footprint, written beforehand, takes 77.5 % of. A trace under which elastic collects less than 16
# units is left out, and named.
#
# Rows:
#   elastic       a stripe's chunks wait for each other, 200 ms of the trace at most; then it is written short
#   elastic-full  they wait until the stripe is full
#   elastic-unit  a unit's chunks wait: the buffer that was has for each of its groups
#   elastic-own   the same, and what is collected gets units of its own
#   was-2         two groups by GLRU, a unit's buffer each
#   sepbit        six classes, a unit's buffer each
#   *-cb          cost-benefit instead of greedy
# One request at a time, null devices. Counts depend on trace and seed alone, not on the machine. The table stays in DIR of
# --out (default: target/experiments/real-traces) with every replay's JSON and real.csv. Exit code 1 if a run fails or its
# counts contradict each other.
#
#   ELASTRIPE=target/release/elastripe  REPLAY_SECONDS_MAX=900  GC_UNITS_MIN=16
set -euo pipefail
usage() { echo "usage: real-traces.sh DIR [--seed N] [--out DIR]" >&2; exit 2; }
[ $# -ge 1 ] || usage
real=$1
[ -d "$real" ] || { echo "real-traces.sh: $real: no folder" >&2; exit 2; }
shift
repo=$(cd "$(dirname "$0")/../.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
out=${CARGO_TARGET_DIR:-$repo/target}/experiments/real-traces
seed=1
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $1 in
    --seed) seed=$2 ;;
    --out) out=$2 ;;
    *) usage ;;
  esac
  shift 2
done
command -v "$elastripe" >/dev/null || { echo "real-traces.sh: no $elastripe (make build)" >&2; exit 1; }
mkdir -p "$out"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

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
    was-2) echo --scheme was ;;
    sepbit) echo --scheme was --placement sepbit ;;
    midas) echo --scheme was --placement midas ;;
    midas-4) echo --scheme was --placement midas --midas-groups 4 ;;
    *-root) options "${1%-root}" "$2"; echo --gc cost-benefit-root ;;
    *-age) options "${1%-age}" "$2"; echo --gc age ;;
    *-windowed) options "${1%-windowed}" "$2"; echo --gc windowed ;;
    *-choices) options "${1%-choices}" "$2"; echo --gc d-choices ;;
  esac
}

# replay NAME ROW OPTION...: prints a line of results.
replay() {
  local name=$1 row=$2 json=$out/$1-$2.json line=$1,6+2,$2 key
  shift 2
  # shellcheck disable=SC2046
  timeout -k 5 "${REPLAY_SECONDS_MAX:-900}" "$elastripe" replay --device null --geometry 6+2 --code rdp --compact --writes-only \
    --queue-depth 1 --seed "$seed" --gc-unit 64 $(options "$row" 384) "$@" --json="$json" >"$out/replay.log" 2>&1 ||
    { cat "$out/replay.log" >&2; echo "real-traces.sh: replay of $name, row $row, failed" >&2; return 1; }
  for key in totals.user_chunks_written cache.absorbed_chunks gc.chunks_rewritten gc.units_collected \
    totals.data_chunks_written totals.parity_chunks_written stripes.full stripes.short; do
    line+=,$(count "$json" "${key%.*}" "${key#*.}")
  done
  echo "$line"
}

# measure NAME FILE...: sets `size`, the device size for a trace; empty, and the reason in left-out.txt, if it is left out.
measure() {
  local name=$1 segments rows units file named=()
  shift
  for file; do named+=(--trace "$file"); done
  "$elastripe" trace info --json "$@" >"$work/info.json"
  segments=$(awk '$1 == "\"segments_touched\":" { print $2 + 0 }' "$work/info.json")
  rows=$(((segments * 256 * 1000 / (775 * 6) + 63) / 64 * 64))
  size=
  if [ $((rows / 64)) -lt 88 ]; then
    echo "$name: $segments MiB are $((rows / 64)) units of 64 rows; collection wants 88 of them to work" >>"$out/left-out.txt"
    return
  fi
  replay "$name" elastic "${named[@]}" --device-size $((rows * 4))KiB --fill >"$work/line"
  units=$(cut -d, -f7 "$work/line")
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
    cat "$work/line"
    named=()
    for file in "${files[@]}"; do named+=(--trace "$file"); done
    for row in elastic-full elastic-unit elastic-own was-2 sepbit midas midas-4 elastic-cb elastic-own-cb was-2-cb sepbit-cb midas-cb \
      midas-4-cb sepbit-root midas-root midas-4-root elastic-unit-age elastic-unit-windowed elastic-unit-choices sepbit-windowed; do
      replay "$name" $row "${named[@]}" --device-size "$size" --fill
    done
  done
}

: >"$out/left-out.txt"
{ echo trace,geometry,row,user,absorbed,rewritten,units,data,parity,full,short; real_traces; } >"$out/real.csv"
{
  echo "real traces, the footprint written first; $("$elastripe" --version), $(nproc) CPUs"
  awk -F, -f "$repo/scripts/experiments/real-traces.awk" "$out/real.csv"
  echo "left out:"
  cat "$out/left-out.txt"
} | tee "$out/table.txt"
