#!/usr/bin/env bash
# What rewriting sequentially costs over NBD: fio, 1 MiB requests, one unix socket, on `elastripe serve --rewrites replace`, on
# `--rewrites log` (how the EPLOG paper counts) and on `nbdkit memory`, in turn. All of the volume is written once before, and then
# again from its beginning on: what was never written would be room for old versions, and put commits off. Prints every
# round, the medians, how much of nbdkit's speed either has left and how many times as much `replace` has, and what the array
# counted: full stripes, log stripes, committed stripes. Exit code 1 below BAR / 10 times.
#
#   GEOMETRY=4+1  CHUNK=4KiB  QD=8  ROUNDS=5  SECONDS_EACH=3  BAR=20  ELASTRIPE=target/release/elastripe
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
rounds=${ROUNDS:-5} each=${SECONDS_EACH:-3} geometry=${GEOMETRY:-4+1} chunk=${CHUNK:-4KiB} bar=${BAR:-20}
for tool in "$elastripe" fio nbdkit nbdinfo; do
  command -v "$tool" >/dev/null || { echo "nbd-rewrites.sh: no $tool (make setup, make build)" >&2; exit 1; }
done
[ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] || { echo "nbd-rewrites.sh: /dev/shm is no tmpfs" >&2; exit 1; }

work=$(TMPDIR=/dev/shm mktemp -d --suffix=.elastripe-rewrites)
. "$repo/scripts/clients/lib.sh"
export ELASTRIPE_RUN_DIR=$work/run
trap give_back_all EXIT
trap 'exit 130' INT TERM
give_back_all() { trap - EXIT; give_back; rm -rf "$work"; }

# make_and_serve NAME: an array of the geometry, served with --rewrites NAME; sets uri_NAME.
make_and_serve() {
  local k=${geometry%+*} m=${geometry#*+} folder=$work/$1 i data=() logs=()
  mkdir "$folder"
  for ((i = 0; i < k + m; i++)); do data+=("$folder/ssd$i"); done
  for ((i = 0; i < m; i++)); do logs+=("$folder/log$i"); done
  timeout 300 "$elastripe" create --scheme eplog --name "$1" --parity "$m" --chunk-size "$chunk" --file-size $((640 / k + 96))MiB \
    --data "${data[@]}" --log "${logs[@]}" >/dev/null
  "$elastripe" serve "${data[@]}" "${logs[@]}" --nbd "unix:$folder/socket" --rewrites "$1" --commit-idle off </dev/null \
    >>"$work/$1.log" 2>&1 &
  note "process $!"
  disown
  printf -v "uri_$1" 'nbd+unix:///?socket=%s' "$folder/socket"
  local uri=uri_$1
  soon 30 timeout 5 nbdinfo --size "${!uri}" || fail "the server does not answer: $(tail -n 3 "$work/$1.log")"
}
make_and_serve replace
make_and_serve log
size=$(($(nbdinfo --size "$uri_replace") >> 20))m
nbdkit -f -U "$work/nbdkit" memory "$size" </dev/null >>"$work/nbdkit.log" 2>&1 &
disown
note "process $!"
uri_nbdkit="nbd+unix:///?socket=$work/nbdkit"
soon 10 timeout 5 nbdinfo --size "$uri_nbdkit" || fail "nbdkit does not answer: $(cat "$work/nbdkit.log")"

# run_fio URI OPTION...: writes per second.
run_fio() {
  timeout -k 5 $((each + 60)) fio --thread --name=job --ioengine=nbd --uri="$1" --size="$size" --rw=write --bs=1m \
    --iodepth="${QD:-8}" --output-format=terse "${@:2}" 2>"$work/fio.err" |
    awk -F';' '$1 == 3 { printf "%d\n", $49 }' | grep . || { cat "$work/fio.err"; fail "fio on $1"; }
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print int((v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2) }'; }
# counted NAME KEY: a figure of the array's since it was assembled.
counted() { "$elastripe" status "$work/$1/ssd0" --json | awk -v key="\"$2\":" '$1 == key { print $2 + 0; exit }'; }

# All own their memory before they are timed, and every timed write is a rewrite.
for name in replace log nbdkit; do uri=uri_$name; run_fio "${!uri}" >/dev/null; done
before=$(counted replace stripes_committed)

echo "fio --rw=write --bs=1m --iodepth=${QD:-8} --size=$size, $geometry, chunks of $chunk, $(nproc) CPUs, requests per second"
printf '%-8s %12s %12s %12s\n' round replace nbdkit log
for round in $(seq "$rounds"); do
  line=()
  for name in replace nbdkit log; do
    uri=uri_$name
    line+=("$(run_fio "${!uri}" --time_based --runtime="$each")")
    echo "${line[-1]}" >>"$work/rates-$name"
  done
  printf '%-8s %12s %12s %12s\n' "$round" "${line[@]}"
done
replace=$(median "$work/rates-replace") log=$(median "$work/rates-log") theirs=$(median "$work/rates-nbdkit")
printf '%-8s %12s %12s %12s\n' median "$replace" "$theirs" "$log"
echo "of nbdkit: replace $((100 * replace / theirs)) %, log $((100 * log / theirs)) %; replace / log $((10 * replace / log)) tenths (bar: $bar)"
for name in replace log; do
  echo "$name, the first writing included: log stripes $(counted "$name" log_stripes_written), commits $(counted "$name" commits)," \
    "stripes committed $(counted "$name" stripes_committed)"
done
echo "stripes committed under replace while timed: $(($(counted replace stripes_committed) - before))"
[ $((10 * replace / log)) -ge "$bar" ]
