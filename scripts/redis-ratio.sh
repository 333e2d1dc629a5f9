#!/usr/bin/env bash
# How much of redis-server's speed `elastripe kv serve` has: redis-benchmark, pipeline 16, one client and fifty, on a store of
# keys (eplog, 6+2 and two log devices) and on `redis-server --appendonly yes`, in turn over unix sockets. Both keep their files
# in the same directory and make them durable once a second. Prints every round: requests a second of both, and the share.
#
#   ROUNDS=3  REQUESTS=400000  BYTES=100 (a value)  SCHEME=eplog  FILES=/tmp (where)  ELASTRIPE=target/release/elastripe
#   CREATE="" SERVE="" (more options of create, kv serve)
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
rounds=${ROUNDS:-3} requests=${REQUESTS:-400000} bytes=${BYTES:-100}
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
start_keys --create --sync everysec ${SERVE:-}
redis-server --port 0 --unixsocket "$work/theirs" --appendonly yes --appendfsync everysec --save '' --dir "$work" </dev/null >>"$work/redis.log" 2>&1 &
note "process $!"
soon 30 redis-cli -s "$work/theirs" ping || fail "redis-server does not answer: $(tail -n 3 "$work/redis.log")"

# rate SOCKET CLIENTS TEST: requests a second.
rate() {
  redis-benchmark -s "$work/$1" -c "$2" -P 16 -t "$3" -n "$requests" -r 100000 -d "$bytes" --csv 2>/dev/null |
    awk -F'"' 'NR == 2 { print $4 }' | grep . || fail "redis-benchmark on $1"
}

echo "redis-benchmark -P 16 -d $bytes -r 100000 -n $requests, $scheme 6+2, $(nproc) CPUs, requests per second"
printf '%-8s %-5s %-6s %12s %12s %8s\n' clients test round elastripe redis-server share
for clients in 1 50; do
  for test in set get; do
    for round in $(seq "$rounds"); do
      o=$(rate keys "$clients" "$test") t=$(rate theirs "$clients" "$test")
      awk -v c="$clients" -v n="$test" -v r="$round" -v o="$o" -v t="$t" \
        'BEGIN { printf "%-8d %-5s %-6d %12d %12d %8.2f\n", c, n, r, o, t, o / t }'
    done
  done
done
