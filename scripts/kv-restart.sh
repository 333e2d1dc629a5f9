#!/usr/bin/env bash
# How long `elastripe kv serve` takes to answer again, and how much memory it takes: after a clean stop and after SIGKILL while keys
# are set, with many small keys. Prints seconds from the start of the process to its first answer, memory then (VmRSS) and the most it
# took meanwhile (VmHWM), and both for each key.
#
#   KEYS=10000000 (of 16 bytes)  BYTES=100 (a value)  SCHEME=eplog  FILES=/tmp (where)  FILE_SIZE (of each of 6+2 members)
#   ELASTRIPE=target/release/elastripe  SERVE="" (more options of kv serve)
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
keys=${KEYS:-10000000} bytes=${BYTES:-100}
for tool in "$elastripe" redis-cli python3; do
  command -v "$tool" >/dev/null || { echo "kv-restart.sh: no $tool (make build; apt-get install redis-tools python3)" >&2; exit 1; }
done
# Six members hold data; records, their lines, and a third for what is being compacted.
file_size=${FILE_SIZE:-$(((keys * (bytes + 90) / 6 * 4 / 3 >> 20) + 64))MiB}

work=$(mktemp -d -p "${FILES:-/tmp}" kv-restart.XXXXXX)
. "$repo/scripts/clients/lib.sh"
. "$repo/scripts/clients/keys.sh"
export ELASTRIPE_RUN_DIR=$work/run
trap give_back_all EXIT
trap 'exit 130' INT TERM
give_back_all() { trap - EXIT; give_back; rm -rf "$work"; }

# set_keys FROM COUNT: sets keys with these numbers, pipelined, and waits for all answers; ends well when the server goes meanwhile.
set_keys() {
  python3 - "$work/keys" "$1" "$2" "$bytes" <<'END'
import socket, sys, threading
path, first, count, size = sys.argv[1], *map(int, sys.argv[2:])
server = socket.socket(socket.AF_UNIX)
server.connect(path)
left = 5 * count
def answers():
    global left
    while left > 0:
        try:
            some = server.recv(1 << 20)
        except OSError:
            break
        if not some:
            break
        assert set(some) <= set(b"+OK\r\n"), some[:200]
        left -= len(some)
reader = threading.Thread(target=answers)
reader.start()
try:
    for at in range(first, first + count, 1000):
        numbers = range(at, min(at + 1000, first + count))
        server.sendall(b"".join(b"*3\r\n$3\r\nSET\r\n$16\r\nkey:%012d\r\n$%d\r\n%s\r\n" % (n, size, b"%0*d" % (size, n)) for n in numbers))
except OSError:
    pass
reader.join()
END
}

# started WHAT: starts the server; prints how long it took and what it takes.
started() {
  local begun=${EPOCHREALTIME/[.,]/}
  start_keys --sync flush "${@:2}"
  local us=$((${EPOCHREALTIME/[.,]/} - begun)) now most count
  now=$(awk '/^VmRSS/ { print $2 * 1024 }' "/proc/$server/status")
  most=$(awk '/^VmHWM/ { print $2 * 1024 }' "/proc/$server/status")
  count=$(redis-cli -s "$work/keys" dbsize)
  awk -v what="$1" -v us="$us" -v now="$now" -v most="$most" -v n="$count" -v cpu="$(ticks)" 'BEGIN {
    printf "%-22s %10d %8.1f %8.1f %10d %10d %8.1f %8.1f\n", what, n, us / 1e6, cpu, now / 1048576, most / 1048576, now / (n ? n : 1), most / (n ? n : 1)
  }'
}
ticks() { sed 's/.*) //' "/proc/$server/stat" | awk -v hz="$(getconf CLK_TCK)" '{ print ($12 + $13) / hz }'; }

# shellcheck disable=SC2086  # words of their own
make_array "${SCHEME:-eplog}" "$file_size" >/dev/null
echo "$keys keys of 16 bytes with $bytes, $scheme 6+2 on files of $file_size, $(nproc) CPUs, load $(cut -d' ' -f1 /proc/loadavg)"
printf '%-22s %10s %8s %8s %10s %10s %8s %8s\n' start keys seconds CPU-s RSS-MiB most-MiB RSS/key most/key
# shellcheck disable=SC2086  # words of their own
started empty --create ${SERVE:-}
set_keys 0 "$keys"
redis-cli -s "$work/keys" save >/dev/null
stop_server
# shellcheck disable=SC2086  # words of their own
started "after a clean stop" ${SERVE:-}
[ "$(redis-cli -s "$work/keys" get "$(printf 'key:%012d' $((keys / 2)))")" = "$(printf '%0*d' "$bytes" $((keys / 2)))" ] || fail "a value is another"
set_keys 0 "$keys" &
writer=$!
sleep 5
kill_server
wait "$writer" || true
# shellcheck disable=SC2086  # words of their own
started "after SIGKILL" ${SERVE:-}
[ "$(redis-cli -s "$work/keys" dbsize)" = "$keys" ] || fail "not all keys are there"
