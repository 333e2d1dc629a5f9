#!/usr/bin/env bash
# The parity-stream paper's experiments (figures 1 and 4 to 7), its future work (a cap chosen online, several parity streams), and
# what the paper found beside it, with a verdict. Its FIO workload is made here from a seed: 16 KiB random writes, Zipf 0.99, four
# at a time. Its TPC-C and YCSB traces do not exist here, and what it found with them is not tried.
#
#   scripts/experiments/parity-streams.sh [--seed N] [--out DIR] [--part engine|ssd|dynamic] [--short yes]
#
# `--short yes` shows in seconds how it goes: fewer utilizations and drive writes, one seed, smaller SSDs, no verdicts.
#
# engine    `elastripe simulate`: RAID-5 (6+1) over seven SSDs of the preset ps-vnand, cut to 1 GiB (328 blocks, not 2,048) so
#           that a cell takes seconds. The fill, then ten drive writes of what is used, of which the last four count: the
#           figures of the whole run less those of its first six tenths, which is the same run so far. At 100 % the SSDs are
#           written whole before. A chunk is one page: md's chunks of 512 KiB are also updated page by page.
# ssd       `elastripe flash run`: one whole ps-vnand, half of the writes parity, uniform over a seventh of the space.
# dynamic   the dynamic cap beside caps 0, 0.1 ... 1 on 1,024 blocks of 64 pages, uniform and Zipf, three seeds.
#
# Laws of conservation are checked in every cell. Tables go to DIR (default: target/experiments/parity-streams) beside the
# cells, which are not run again if they are there.
#
#   ELASTRIPE=target/release/elastripe
set -euo pipefail
parts="engine ssd dynamic"
brief=
own_option() {
  case $1:$2 in
    --part:engine | --part:ssd | --part:dynamic) parts=$2 ;;
    --short:yes) brief=yes ;;
    *) return 1 ;;
  esac
}
options="[--seed N] [--out DIR] [--part engine|ssd|dynamic] [--short yes]"
. "$(dirname "$0")/common.sh"
# Utilizations, drive writes (of which the last ones count), SSDs, seeds.
percents="10 20 30 40 50 60 70 80 90 100" writes=10 counted=4 long=50 ssd_mib=1024 seeds="1 2 3" warmup=60 useds="0.3 0.5 0.7 0.9 1"
caps="0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8 0.9 1 dynamic dynamic:inf" patterns="uniform zipf:0.99"
if [ -n "$brief" ]; then percents=50 writes=2 counted=1 long=3 ssd_mib=256 seeds=1 warmup=1 useds=0.5 patterns=uniform; fi

### engine

# trace PERCENT WRITES: 16 KiB Zipf writes over that share of six SSDs of 1 GiB (the generator's are of 4 KiB).
trace() {
  "$elastripe" trace generate --profile zipf:0.99 --requests "$2" --range "$((3 * ssd_mib * $1 / 200))MiB" --seed "$seed" \
    --force "$traces/small.csv" >/dev/null
  awk -F, -v OFS=, '/^[0-9]/ { $4 = sprintf("%.0f", 4 * $4); $5 = 16384 } { print }' "$traces/small.csv" >"$traces/trace.csv"
}

# rows PERCENT NAME WRITES COUNTED AXIS OPTION...: a sweep of AXIS with the whole trace and with what comes before the part that
# counts; appends a line for each value: utilization, name, value, requests, SSD pages, copies, programs, of them SLC, seconds.
rows() {
  local percent=$1 name=$2 writes=$3 counted=$4 axis=$5 full=() head
  shift 5
  if [ "$percent" = 100 ]; then full=(--prefill); fi
  local cell=$out/engine/u$percent-$name
  for head in "$writes" "$((writes - counted))"; do
    "$elastripe" simulate --trace "$traces/trace.csv" --head "$head" --scheme raid --geometry 6+1 --chunk-size 16KiB \
      --ssd ps-vnand --ssd-size "${ssd_mib}MiB" --fill --writes-only --queue-depth 4 --check --jobs 1 --seed "$seed" "${full[@]}" \
      "$@" --sweep "$axis" --out "$cell-$head" >"$cell-$head.txt"
  done
  awk -F, -v u="$percent" -v name="$name" -v axis="${axis%%=*}" '
    FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    { key = $at[axis]; sign = FILENAME == ARGV[1] ? 1 : -1
      # wear = SLC + R (programs - SLC), R = 2.5
      slc = (2.5 * $at["flash_pages_written"] - $at["wear"]) / 1.5
      requests[key] += sign * $at["requests"]; pages[key] += sign * $at["ssd_pages_written"]
      copies[key] += sign * $at["page_copies"]; programs[key] += sign * $at["flash_pages_written"]
      low[key] += sign * slc; seconds[key] += sign * $at["virtual_seconds"] }
    END { for (key in requests) printf "%d,%s,%s,%d,%d,%d,%d,%.0f,%.6f\n", u, name, key, requests[key], pages[key],
      copies[key], programs[key], low[key], seconds[key] }' \
    "$cell-$writes/results.csv" "$cell-$((writes - counted))/results.csv" | sort -t, -k3 >>"$out/engine/rows.csv"
}

# per_disk: writes per SSD at 50 %, rotating parity as run, and what RAID-4 would have: by the trace, data page p on disk p mod 6.
per_disk() {
  local cell
  cell=$(awk -F, '/,none,/ { print $1; exit }' "$1"/results.csv)
  echo "figure 1, writes per disk (pages of 16 KiB; $2 random writes):"
  awk '/^  "fill"/ { exit }
    /"host_pages_written"/ { gsub(/[^0-9]/, ""); pages[n++] = $0 }
    /"parity_pages_written"/ { gsub(/[^0-9]/, ""); parity[n - 1] = $0 }
    END { printf "  RAID-5, data + parity:"; for (i = 0; i < 7; i++) printf " %d+%d", pages[i] - parity[i], parity[i]; print "" }' \
    "$1/$cell.json"
  awk -F, -v head="$2" '/^[0-9]/ && n < head { n++; disk[($4 / 16384) % 6]++ }
    END { printf "  RAID-4, data disks:"; for (i = 0; i < 6; i++) printf " %d", disk[i]; printf "; parity disk: %d\n", n }' "$traces/trace.csv"
}

engine() {
  mkdir -p "$out/engine"
  : >"$out/engine/rows.csv"
  : >"$out/engine/disks.txt"
  local percent drive
  for percent in $percents; do
    # Range of the trace: at 100 % a little less, for the array's metadata. A write is one page of data and one of parity.
    local range=$percent
    if [ "$percent" = 100 ]; then range=97; fi
    drive=$((7 * 64 * ssd_mib * range / 200))
    trace "$range" "$((writes * drive))"
    rows "$percent" streams "$((writes * drive))" "$((counted * drive))" streams=none,parity
    case $percent in
      50) per_disk "$out/engine/u50-streams-$((writes * drive))" "$((writes * drive))" >"$out/engine/disks.txt" ;;&
      30 | 50 | 70 | 90 | 100)
        rows "$percent" cap "$((writes * drive))" "$((counted * drive))" slc-cap=0.2,0.4,0.6,0.8,1 --streams parity
        rows "$percent" classes "$((writes * drive))" "$((counted * drive))" parity-classes=1,2,4 --streams class ;;
      *) rows "$percent" cap "$((writes * drive))" "$((counted * drive))" slc-cap=1 --streams parity ;;
    esac
    case $percent in
      50 | 70)
        trace "$range" "$((long * drive))"
        rows "$percent" dynamic "$((long * drive))" "$((counted * drive))" slc-cap=0,dynamic,dynamic:inf --streams parity ;;
    esac
    rm "$traces"/*.csv
  done
}

# engine_table: from rows.csv.
engine_table() {
  cat "$out/engine/disks.txt"
  awk -F, -v short="$brief" '
    function wear(i, r) { return (slc[i] + r * (programs[i] - slc[i])) / requests[i] }
    # A short run is no evidence for or against the paper.
    function verdict(text, holds) { printf "  %s%s\n", text, short != "" ? "" : holds ? ": as the paper" : ": not as the paper" }
    { i = $1 "," $2 "," $3; requests[i] = $4; pages[i] = $5; copies[i] = $6; programs[i] = $7; slc[i] = $8; seconds[i] = $9
      if (!($1 in seen)) { seen[$1]; u[++count] = $1 } }
    END {
      print "figures 4 to 6: RAID-5 (6+1), against base (one stream); PS: parity stream, CP: SLC mode without a cap but that of the space (cap 1)"
      print "  used | copies per SSD page: base, PS, PS+CP | PS / base | lifespan PS | PS+CP at R = 1.5, 2.5, 3.5 | writes/s: base, PS, PS+CP"
      for (k = 1; k <= count; k++) {
        b = u[k] ",streams,none"; p = u[k] ",streams,parity"; c = u[k] ",cap,1"
        printf "  %3d %% | %.3f %.3f %.3f | %+.0f %% | %.2f | %.2f %.2f %.2f | %.0f %.0f %.0f\n", u[k], copies[b] / pages[b],
          copies[p] / pages[p], copies[c] / pages[c], 100 * (copies[b] ? copies[p] / copies[b] - 1 : 0), wear(b, 2.5) / wear(p, 2.5),
          wear(b, 1.5) / wear(c, 1.5), wear(b, 2.5) / wear(c, 2.5), wear(b, 3.5) / wear(c, 3.5),
          requests[b] / seconds[b], requests[p] / seconds[p], requests[c] / seconds[c]
        fewer = copies[b] ? copies[p] / copies[b] - 1 : 0; if (k == 1 || fewer < most) most = fewer
        if (fewer <= -0.58) reached = u[k]
        if (wear(b, 2.5) / wear(p, 2.5) > alone) alone = wear(b, 2.5) / wear(p, 2.5)
        if (wear(b, 1.5) < wear(c, 1.5)) worse = worse " " u[k] " %"
        if (requests[c] / seconds[c] < requests[b] / seconds[b]) slower = slower " " u[k] " %"
        if (k > 1 && requests[c] / seconds[c] > last) rising = 1
        last = requests[c] / seconds[c]
        if (u[k] == 90) high = wear(b, 2.5) / wear(c, 2.5)
      }
      printf "  figure 4, copies -58 %%: at most %+.0f %%%s\n", 100 * most, short != "" ? "" : most <= -0.58 ? ": as the paper up to a utilization of " reached " %, less above" : ": not as the paper"
      verdict(sprintf("figure 5, PS alone barely changes the lifespan: at most x %.2f", alone), alone < 1.1)
      verdict("figure 5, CP lengthens the lifespan in all cases: shorter at R = 1.5 with" (worse ? worse : " none"), worse == "")
      verdict("figure 6, throughput falls with utilization" (rising ? " (not always)" : "") ", below base with" (slower ? slower : " none"),
        !rising && slower ~ /60 %/ && slower !~ /50 %/)
      if (high) verdict(sprintf("figure 6, lifespan gained at 90 %% and R = 2.5: x %.2f", high), high > 1)
      print "figure 7: R = 2.5, lifespan / writes/s against base, by cap"
      print "  used | 0 | 0.2 | 0.4 | 0.6 | 0.8 | 1 | best cap for the lifespan"
      for (k = 1; k <= count; k++) {
        if (!((u[k] ",cap,0.2") in requests)) continue
        b = u[k] ",streams,none"; line = ""; best = 0; fell = 0; before = 0
        for (cap = 0; cap <= 5; cap++) {
          i = cap ? u[k] ",cap," (cap / 5) : u[k] ",streams,parity"
          life = wear(b, 2.5) / wear(i, 2.5)
          line = line sprintf(" | %.2f / %.2f", life, requests[i] / seconds[i] / (requests[b] / seconds[b]))
          if (life > best) { best = life; at = cap / 5 }
          if (life < 0.995 * before) fell = 1
          before = life
        }
        printf "  %3d %%%s | %s\n", u[k], line, at
        if (fell) falls = falls " " u[k] " %"
      }
      verdict("figure 7, more SLC blocks, more lifespan at any utilization: it falls with the cap at" (falls ? falls : " none"), falls == "")
      print "the cap chosen online, in the array, at the end of a long run: write amplification and lifespan against the parity stream alone"
      for (k = 1; k <= count; k++) if ((u[k] ",dynamic,dynamic") in requests) {
        z = u[k] ",dynamic,0"; d = u[k] ",dynamic,dynamic"; f = u[k] ",dynamic,dynamic:inf"
        printf "  %3d %% | dynamic %+.2f %%, x %.3f | dynamic:inf %+.2f %%, x %.3f\n", u[k],
          100 * (programs[d] * requests[z] / requests[d] / programs[z] - 1), wear(z, 2.5) / wear(d, 2.5),
          100 * (programs[f] * requests[z] / requests[f] / programs[z] - 1), wear(z, 2.5) / wear(f, 2.5)
      }
      print "several parity streams: parity in 1, 2 and 4 classes by how long it lives; copies per SSD page"
      for (k = 1; k <= count; k++) if ((u[k] ",classes,1") in requests) {
        one = u[k] ",classes,1"; two = u[k] ",classes,2"; four = u[k] ",classes,4"
        printf "  %3d %% | %.4f | %.4f (%+.1f %%) | %.4f (%+.1f %%)\n", u[k], copies[one] / pages[one], copies[two] / pages[two],
          100 * (copies[two] / copies[one] - 1), copies[four] / pages[four], 100 * (copies[four] / copies[one] - 1)
      }
    }' "$out/engine/rows.csv"
}

### one SSD

# cell NAME OPTION...: a run of one SSD; leaves its JSON in DIR/NAME.json.
cell() {
  local file=$out/$1.json
  shift
  [ -s "$file" ] && return
  mkdir -p "$(dirname "$file")"
  "$elastripe" flash run --parity-writes 0.5 --check --json "$@" >"$file.part"
  mv "$file.part" "$file"
}

# figures FILE: write amplification, wear per host page, host pages per second of virtual time (0 without).
figures() {
  awk -F'[:,]' '/"write_amplification"/ { wa = $2 } /"wear_per_host_page"/ { wear = $2 } /"host_pages_written_per_virtual_second"/ { rate = $2 }
    END { printf "%.5f,%.5f,%.1f\n", wa, wear, rate }' "$1"
}

# sweep FOLDER SEED OPTION...: one stream, the parity stream and all caps at all utilizations; lines of folder, utilization, cap, figures.
sweep() {
  local folder=$1 run_seed=$2 used cap
  shift 2
  for used in $useds; do
    cell "$folder/u$used-none-$run_seed" "$@" --utilization "$used" --seed "$run_seed"
    cell "$folder/u$used-0-$run_seed" "$@" --utilization "$used" --seed "$run_seed" --streams parity
    for cap in $caps; do
      cell "$folder/u$used-$cap-$run_seed" "$@" --utilization "$used" --seed "$run_seed" --streams parity --slc-cap "$cap"
    done
    for cap in none 0 $caps; do
      echo "$folder,$used,$cap,$(figures "$out/$folder/u$used-$cap-$run_seed.json")"
    done
  done
}

# beside_static FILE: of lines as above, means over the seeds: the dynamic cap beside the best static one within 5 % of the separated
# streams, and without the limit.
beside_static() {
  awk -F, -v short="$brief" '
    { n[$1, $2, $3]++; wa[$1, $2, $3] += $4; wear[$1, $2, $3] += $5; rate[$1, $2, $3] += $6
      if (!(($1, $2) in seen)) { seen[$1, $2]; folder[++count] = $1; used[count] = $2 } }
    function mean(of, cap) { return of[folder[k], used[k], cap] / n[folder[k], used[k], cap] }
    END {
      print "  workload, used | separate: WA / wear | best cap within 5 %: WA, wear | dynamic: WA, wear | against best |" \
        " best cap of all: wear | dynamic:inf: WA, wear"
      for (k = 1; k <= count; k++) {
        base = mean(wa, 0); best = mean(wear, 0); at = 0; all = best; at_all = 0
        for (t = 1; t <= 10; t++) {
          cap = t / 10
          if (mean(wa, cap) <= 1.05 * base && mean(wear, cap) < best) { best = mean(wear, cap); at = cap }
          if (mean(wear, cap) < all) { all = mean(wear, cap); at_all = cap }
        }
        more = 100 * (mean(wa, "dynamic") / base - 1); worse = 100 * (mean(wear, "dynamic") / best - 1)
        printf "  %-14s %3d %% | %.4f / %.4f | %s: %+.2f %%, %.4f | %+.2f %%, %.4f | %+.2f %%", folder[k], 100 * used[k], base,
          mean(wear, 0), at, 100 * (mean(wa, at) / base - 1), best, more, mean(wear, "dynamic"), worse
        printf " | %s: %.4f | %+.2f %%, %.4f (%+.2f %%)\n", at_all, all, 100 * (mean(wa, "dynamic:inf") / base - 1),
          mean(wear, "dynamic:inf"), 100 * (mean(wear, "dynamic:inf") / all - 1)
        if (used[k] <= 0.9 && (more > 5 || worse > 0.5)) failed = failed " " folder[k] " at " used[k]
      }
      if (short == "") print "  dynamic within 5 % of the separate streams and no more wear than the best static cap (to 0.5 %), 30 to 90 %: " \
        (failed ? "not with" failed : "yes")
    }' "$1"
}

ssd() {
  local size=()
  if [ -n "$brief" ]; then size=(--logical-size "${ssd_mib}MiB"); fi
  sweep ps-vnand "$seed" --workload zipf:0.99 --preset ps-vnand "${size[@]}" --warmup "$warmup" --drive-writes "$writes" >"$out/ssd.csv"
}

ssd_table() {
  echo "one ps-vnand, Zipf 0.99, seed $seed: lifespan at R = 2.5 / throughput against one stream, by cap"
  awk -F, '$3 == "none" { wear = $5; rate = $6; printf "%s  %3d %%", (NR > 1 ? "\n" : ""), 100 * $2; next }
    { printf " | %s: %.2f / %.2f", $3, wear / $5, $6 / rate } END { print "" }' "$out/ssd.csv"
  beside_static "$out/ssd.csv"
}

dynamic() {
  local run_seed pattern
  for pattern in $patterns; do
    for run_seed in $seeds; do
      sweep "$pattern" "$run_seed" --workload "$pattern" --blocks 1024 --logical-size 200MiB --gc-free 10% --warmup "$warmup" \
        --drive-writes "$((counted * 10))"
    done
  done >"$out/dynamic.csv"
}

dynamic_table() {
  echo "1,024 blocks of 64 pages, spare factor 1.152, seeds $seeds; R = 2.5"
  beside_static "$out/dynamic.csv"
}

{
  echo "synthetic workloads, seed $seed${brief:+, short}; $("$elastripe" --version), $(nproc) CPUs"
  for part in $parts; do
    "$part"
    if [ "$part" = engine ]; then engine_table; elif [ "$part" = ssd ]; then ssd_table; else dynamic_table; fi
  done
} | tee "$out/table.txt"

### plots

# draw TABLE NAME OPTION...: a plot of TABLE.csv over the utilization.
draw() { "$elastripe" plot "$out/$1.csv" --x "used (%)" --linear-x --width page --out "$out/$2.svg" "${@:3}"; }

# beside_one_stream FILE: lifespan and throughput of a few caps against one stream, of lines as `sweep` leaves them.
beside_one_stream() {
  awk -F, 'BEGIN { split("0 0.3 1 dynamic dynamic:inf", shown, " "); for (i in shown) wanted[shown[i]]
      print "workload,used (%),cap,lifespan" }
    { n[$1, $2, $3]++; wear[$1, $2, $3] += $5; if ($3 in wanted && !(($1, $2, $3) in seen)) { seen[$1, $2, $3]; line[++count] = $0 } }
    END { for (k = 1; k <= count; k++) { split(line[k], part, ","); one = part[1] SUBSEP part[2] SUBSEP "none"
      this = part[1] SUBSEP part[2] SUBSEP part[3]
      printf "%s,%d,%s,%.4f\n", part[1], 100 * part[2], part[3], wear[one] / n[one] / (wear[this] / n[this]) } }' "$1"
}

for part in $parts; do
  if [ "$part" = engine ]; then
    awk -F, 'BEGIN { print "used (%),scheme,lifespan,writes/s"; name["streams,none"] = "one stream"
        name["streams,parity"] = "parity stream"; name["cap,1"] = "parity stream and SLC mode" }
      { wear = ($8 + 2.5 * ($7 - $8)) / $4; if ($2 == "streams" && $3 == "none") base[$1] = wear
        if (($2 "," $3) in name) { count++; used[count] = $1; of[count] = name[$2 "," $3]; all[count] = wear; rate[count] = $4 / $9 } }
      END { for (i = 1; i <= count; i++) printf "%d,%s,%.4f,%.1f\n", used[i], of[i], base[used[i]] / all[i], rate[i] }' \
      "$out/engine/rows.csv" >"$out/engine.csv"
    draw engine engine-lifespan --y lifespan --series scheme --y-label "lifespan, one stream = 1 (R = 2.5)"
    draw engine engine-throughput --y writes/s --series scheme
  elif [ "$part" = ssd ]; then
    beside_one_stream "$out/ssd.csv" >"$out/ssd-lifespan.csv"
    draw ssd-lifespan ssd-lifespan --y lifespan --series cap --y-label "lifespan, one stream = 1 (R = 2.5)"
  else
    beside_one_stream "$out/dynamic.csv" >"$out/dynamic-lifespan.csv"
    draw dynamic-lifespan dynamic-lifespan --y lifespan --series cap --where workload=uniform --y-label "lifespan, one stream = 1 (R = 2.5)"
  fi
done
