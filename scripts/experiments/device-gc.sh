#!/usr/bin/env bash
# EPLOG, experiments 2 and 3: GC operations of the SSDs under the schemes raid, parity-log and eplog, and under eplog with
# parity commits never, at the end, and every 10,000 and 1,000 writes. Stand-ins for the paper's traces (made here, from a
# seed) at (6+2) over simulated SSDs of the preset eplog-disksim, full before the array is made, log devices without
# service times. Counts the fill of the array too, as the paper does.
#
#   scripts/experiments/device-gc.sh [--requests N] [--seed N] [--out DIR] [--trace mds|usr|web|fin]
#
# Prints a table per trace beside the paper's ranges (EPLOG, experiments 2 and 3) and leaves it in DIR (default:
# target/experiments/device-gc) with results.csv and the JSON of every cell; cells that are there are not run again. Beside
# the measured figures are those that follow from less:
#   predicted   GC operations if GC copies nothing: pages written to the SSDs / 64, less the 8,192 blocks of each that are free above
#               the 5 %; then the same without the pages of metadata
#   stripes x m chunks that commits write: distinct stripes that each interval's writes touch (commit-stripes.awk), m for each
#
# Full length takes half an hour of processor time, most of it for FIN, and 3 GiB of memory.
#
#   ELASTRIPE=target/release/elastripe
set -euo pipefail
all="mds usr web fin"
own_option() {
  case $1:$2 in --trace:mds | --trace:usr | --trace:web | --trace:fin) all=$2 ;; *) return 1 ;; esac
}
options="[--requests N] [--seed N] [--out DIR] [--trace mds|usr|web|fin]"
. "$(dirname "$0")/common.sh"

# The paper logs every update (section 3.2).
common=(--geometry 6+2 --rewrites log --ssd eplog-disksim --prefill --fill --compact --writes-only --queue-depth 1 --untimed --jobs 1)

# pages JSON: pages written to the SSDs of the cell by fill and trace, of them those of metadata, and copies, per SSD. A fill
# writes n chunks for k of the footprint.
pages() {
  awk '/^  "fill": [{]/ { inside = 1 } /^  [}]/ { inside = 0 }
    $1 == "\"footprint_bytes\":" { footprint = $2 + 0 }
    $1 == "\"ssd_chunks_written\":" { chunks = $2 + 0 } $1 == "\"ssd_pages_written\":" { run = $2 + 0 }
    $1 == "\"page_copies\":" && !all { copies = $2 + 0; all = 1 }
    $1 == "\"role\":" { main = $2 ~ /main/ }
    inside && main && $1 == "\"host_pages_written\":" { fill += $2 }
    inside && main && $1 == "\"page_copies\":" { copies += $2 }
    END { printf "%.1f,%.1f,%.1f\n", (fill + run) / 8, (fill + run - chunks - footprint / 4096 / 6 * 8) / 8, copies / 8 }' "$1"
}

# rows DIR NAME: of each line of results.csv the scheme or commit case, SSD chunks written, GC operations per SSD with the fill,
# and what `pages` says.
rows() {
  awk -F, -v axis="$2" 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { printf "%s,%s,%s,%s\n", $1, $at[axis], $at["ssd_chunks_written"], $at["gc_operations_mean_with_fill"] }' "$1/results.csv" |
    while IFS=, read -r cell rest; do echo "$rest,$(pages "$1/$cell.json")"; done
}

# reductions FROM: what the other lines save beside the line FROM.
reductions() {
  awk -F, -v base="$1" 'function blocks(pages) { return pages / 64 > 8192 ? pages / 64 - 8192 : 0 }
    { name[NR] = $1; ssd[NR] = $2; gc[NR] = $3; all[NR] = $4; meta[NR] = $5; copies[NR] = $6; if ($1 == base) { s = $2; g = $3 } }
    END { for (i = 1; i <= NR; i++)
      printf "  %-12s %12d SSD chunks (%+6.1f %%)  %9.1f GC operations per SSD (%s), predicted %9.1f, without metadata %9.1f; copies %.1f\n", name[i],
        ssd[i], 100 * (ssd[i] / s - 1), gc[i], (g > 0 ? sprintf("%+6.1f %%", 100 * (gc[i] / g - 1)) : "none in " base),
        blocks(all[i]), blocks(all[i] - meta[i]), copies[i] }'
}

# commits TRACE: SSD chunks beyond those without commits, and what distinct stripes predict.
commits() {
  local every never measured stripes
  never=$(rows "$out/$1-commit" commit-every | awk -F, '$1 == "never" { print $2 }')
  for every in 10000 1000; do
    measured=$(rows "$out/$1-commit" commit-every | awk -F, -v every=$every -v never="$never" '$1 == every { print $2 - never }')
    stripes=$(awk -v every=$every -v k=6 -f "$repo/scripts/experiments/commit-stripes.awk" "$traces/$1.csv" "$traces/$1.csv")
    echo "  every $every: $measured chunks more, $stripes distinct stripes x 2 = $((2 * stripes))"
  done
}

{
  echo "synthetic stand-ins, seed $seed, ${requests[1]:-all} requests; $("$elastripe" --version), $(nproc) CPUs"
  for trace in $all; do
    file=$traces/$trace.csv
    "$elastripe" trace generate --profile "$trace" "${requests[@]}" --seed "$seed" "$file" >/dev/null
    "$elastripe" simulate --trace "$file" "${common[@]}" --seed "$seed" --compare raid,parity-log,eplog \
      --out "$out/$trace" >"$out/$trace.txt"
    "$elastripe" simulate --trace "$file" "${common[@]}" --seed "$seed" --sweep commit-every=never,end,10000,1000 \
      --out "$out/$trace-commit" >"$out/$trace-commit.txt"
    echo "$trace, against raid (EPLOG, experiment 2${short:+, at full length}: eplog -77.1 to -97.6 % GC, FIN -59.6 to -77.1 %, MDS none):"
    rows "$out/$trace" scheme | reductions raid
    echo "$trace, eplog by commits, against never (EPLOG, experiment 3${short:+, at full length}: SSD writes up to +4.3 % end, +17.4 % 10K, +24.9 % 1K):"
    rows "$out/$trace-commit" commit-every | reductions never
    commits "$trace"
    rm "$file"
  done
} | tee "$out/table.txt"

# gather NAME SUFFIX: the results of all traces in one table.
gather() {
  local trace files=()
  for trace in $all; do files+=("$out/$trace$2/results.csv"); done
  awk -v suffix="$2" 'FNR == 1 && NR > 1 { next }
    { n = split(FILENAME, path, "/"); name = substr(path[n - 1], 1, length(path[n - 1]) - length(suffix)); print (NR == 1 ? "workload" : name) "," $0 }' \
    "${files[@]}" >"$out/$1.csv"
}

# draw NAME SERIES: none if no SSD has collected anything.
draw() {
  rm -f "$out/$1.svg"
  if any "$out/$1.csv" gc_operations_mean_with_fill; then
    "$elastripe" plot "$out/$1.csv" --x workload --y gc_operations_mean_with_fill --series "$2" --out "$out/$1.svg"
  else
    echo "no plot $1.svg: no SSD has collected anything" | tee -a "$out/table.txt"
  fi
}

gather schemes ""
gather commits -commit
draw schemes scheme
draw commits commit-every
