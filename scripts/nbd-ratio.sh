#!/usr/bin/env bash
# How much of a plain memory server's speed is left with an array behind NBD: fio, 4 KiB random writes, 32 in flight, one
# unix socket, on `elastripe serve` (eplog, 6+2 and two log devices, files in memory) and on `nbdkit memory`, in turn, so
# that a drift of the machine hits both alike. Prints every round, the medians and their ratio; exit code 1 below BAR %.
# nbdkit has its bytes in its own memory; with FRONTS=target/release/examples/fronts so has the array (`cargo build
# --release -p elastripe --example fronts`), so that no file system is measured with it, THREADS=2 with as many shards,
# whose threads serve the clients, too; SOCKETS=apart: another thread does.
#
#   ROUNDS=5  SECONDS_EACH=4  BAR=60  SCHEME=eplog  ELASTRIPE=target/release/elastripe  RW=randwrite  BS=4k  QD=32
#   CLIENTS=1 (connections, each with QD in flight)  SERVE="" CREATE="" (more options of serve, create)
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
rounds=${ROUNDS:-5} each=${SECONDS_EACH:-4} bar=${BAR:-60} size=512m
for tool in "$elastripe" fio nbdkit nbdinfo; do
  command -v "$tool" >/dev/null || { echo "nbd-ratio.sh: no $tool (make setup, make build)" >&2; exit 1; }
done
[ "$(stat -f -c %T /dev/shm 2>/dev/null)" = tmpfs ] || { echo "nbd-ratio.sh: /dev/shm is no tmpfs" >&2; exit 1; }

work=$(TMPDIR=/dev/shm mktemp -d --suffix=.elastripe-ratio)
. "$repo/scripts/clients/lib.sh"
export ELASTRIPE_RUN_DIR=$work/run
trap give_back_all EXIT
trap 'exit 130' INT TERM
give_back_all() { trap - EXIT; give_back; rm -rf "$work"; }

if [ -n "${FRONTS:-}" ]; then
  mkdir "$work/fronts"
  "$FRONTS" serve "$work/fronts" --devices memory --threads "${THREADS:-1}" --sockets "${SOCKETS:-shards}" </dev/null >"$work/serve.log" 2>&1 &
  disown
  note "process $!"
  ours_uri="nbd+unix:///?socket=$work/fronts/nbd"
  soon 60 timeout 5 nbdinfo --size "$ours_uri" || fail "fronts does not answer: $(cat "$work/serve.log")"
else
  # shellcheck disable=SC2086  # words of their own
  make_array "${SCHEME:-eplog}" 192MiB ${CREATE:-} >/dev/null
  # shellcheck disable=SC2086  # words of their own
  start_server ${SERVE:-}
  ours_uri=$uri
fi
nbdkit -f -U "$work/nbdkit" memory "$size" </dev/null >>"$work/nbdkit.log" 2>&1 &
disown
note "process $!"
theirs_uri="nbd+unix:///?socket=$work/nbdkit"
soon 10 timeout 5 nbdinfo --size "$theirs_uri" || fail "nbdkit does not answer: $(cat "$work/nbdkit.log")"

# run_fio URI OPTION...: writes per second.
run_fio() {
  timeout -k 5 $((each + 60)) fio --thread --name=job --ioengine=nbd --uri="$1" --size="$size" --output-format=terse "${@:2}" \
    2>"$work/fio.err" | awk -F';' '$1 == 3 { printf "%d\n", $8 + $49 }' | grep . ||
    { cat "$work/fio.err"; fail "fio on $1"; }
}
median() { sort -n "$1" | awk '{ v[NR] = $1 } END { print int((v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2) }'; }

# Both own all their memory before they are timed, and every timed write of the array is an update.
for target in "$ours_uri" "$theirs_uri"; do run_fio "$target" --rw=write --bs=1m --iodepth=8 >/dev/null; done

job=(--rw="${RW:-randwrite}" --bs="${BS:-4k}" --iodepth="${QD:-32}" --numjobs="${CLIENTS:-1}"
     --group_reporting --time_based --runtime="$each")
echo "fio ${job[*]} --size=$size, $(nproc) CPUs, requests per second"
printf '%-8s %12s %12s %8s\n' round elastripe nbdkit ratio
for round in $(seq "$rounds"); do
  a=$(run_fio "$ours_uri" "${job[@]}")
  b=$(run_fio "$theirs_uri" "${job[@]}")
  echo "$a" >>"$work/ours"; echo "$b" >>"$work/theirs"
  printf '%-8s %12s %12s %7s%%\n' "$round" "$a" "$b" $((100 * a / b))
done
a=$(median "$work/ours") b=$(median "$work/theirs")
printf '%-8s %12s %12s %7s%%   (bar: %s%%)\n' median "$a" "$b" $((100 * a / b)) "$bar"
[ -n "${FRONTS:-}" ] || stop_server
[ $((100 * a / b)) -ge "$bar" ]
