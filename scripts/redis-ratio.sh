#!/usr/bin/env bash
# How much of redis-server's speed `elastripe kv serve` has: redis-benchmark, pipeline 16, one client and fifty, on a store of
# keys (eplog, 6+2 and two log devices) and on `redis-server --appendonly yes`, in turn over unix sockets. Both keep their files
# in the same directory and make them durable once a second (FSYNC=everysec), with each change (always) or as the machine
# likes (no; ours when a client says SAVE). Prints every round: requests a second of both and the share; and microseconds of
# processor time of either server for a request and their share, which other work on the machine changes less.
#
#   ROUNDS=3  REQUESTS=400000  BYTES=100 (a value)  SCHEME=eplog  FILES=/tmp (where)  ELASTRIPE=target/release/elastripe
#   CREATE="" SERVE="" (more options of create, kv serve)
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
rounds=${ROUNDS:-3} requests=${REQUESTS:-400000} bytes=${BYTES:-100} fsync=${FSYNC:-everysec}
case $fsync in
  everysec | always) sync=$fsync ;;
  no) sync=flush ;;
  *) echo "redis-ratio.sh: FSYNC is '$fsync', expected everysec, always or no" >&2; exit 1 ;;
esac
for tool in "$elastripe" redis-server redis-cli redis-benchmark; do
  command -v "$tool" >/dev/null || { echo "redis-ratio.sh: no $tool (make build; apt-get install redis-server)" >&2; exit 1; }
done

work=$(mktemp -d -p "${FILES:-/tmp}" redis-ratio.XXXXXX)
. "$repo/scripts/clients/lib.sh"
. "$repo/scripts/clients/keys.sh"
export ELASTRIPE_RUN_DIR=$work/run
trap give_back_all EXIT
trap 'exit 130' INT TERM
give_back_all() { trap - EXIT; give_back; rm -rf "$work"; }

# shellcheck disable=SC2086  # words of their own
make_array "${SCHEME:-eplog}" 1GiB ${CREATE:-} >/dev/null
# shellcheck disable=SC2086  # words of their own
start_keys --create --sync "$sync" ${SERVE:-}
redis-server --port 0 --unixsocket "$work/theirs" --appendonly yes --appendfsync "$fsync" --save '' --dir "$work" </dev/null >>"$work/redis.log" 2>&1 &
theirs=$!
note "process $theirs"
soon 30 redis-cli -s "$work/theirs" ping || fail "redis-server does not answer: $(tail -n 3 "$work/redis.log")"

# rate SOCKET CLIENTS TEST PROCESS: requests a second, and microseconds of the server's processor time for each.
rate() {
  local before after
  before=$(ticks "$4")
  redis-benchmark -s "$work/$1" -c "$2" -P 16 -t "$3" -n "$requests" -r 100000 -d "$bytes" --csv 2>/dev/null |
    awk -F'"' 'NR == 2 { print $4 }' | grep . >"$work/rate" || fail "redis-benchmark on $1"
  after=$(ticks "$4")
  awk -v t=$((after - before)) -v hz="$(getconf CLK_TCK)" -v n="$requests" '{ print $1, t * 1e6 / hz / n }' "$work/rate"
}

# ticks PROCESS: of the processor, all its threads together.
ticks() { sed 's/.*) //' "/proc/$1/stat" | awk '{ print $12 + $13 }'; }

echo "redis-benchmark -P 16 -d $bytes -r 100000 -n $requests, $scheme 6+2 --sync $sync, redis-server --appendonly yes --appendfsync $fsync, $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
printf '%-8s %-5s %-6s %12s %12s %8s %10s %10s %8s\n' clients test round elastripe redis-server share us-of-CPU theirs share
for clients in 1 50; do
  for test in set get; do
    for round in $(seq "$rounds"); do
      o=$(rate keys "$clients" "$test" "$server") t=$(rate theirs "$clients" "$test" "$theirs")
      awk -v c="$clients" -v n="$test" -v r="$round" -v o="$o" -v t="$t" 'BEGIN {
        split(o, ours); split(t, theirs)
        printf "%-8d %-5s %-6d %12d %12d %8.2f %10.2f %10.2f %8.2f\n", c, n, r, ours[1], theirs[1], ours[1] / theirs[1],
          ours[2], theirs[2], theirs[2] / ours[2]
      }'
    done
  done
done
