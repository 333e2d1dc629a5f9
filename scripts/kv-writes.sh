#!/usr/bin/env bash
# Bytes written to the devices of a 6+2 array for each byte that a client updates: the key-value store, and RocksDB on ext4 on an
# array of the same scheme and size, through nbdfuse and a loop device. The same keys in the same order: all are set once, then
# updated by Zipf 0.99; values are random bytes. Neither acknowledges durably (--sync flush; no sync of RocksDB's log) until the end,
# when all is made durable and, with RocksDB, the file system is unmounted. Counted is what the engine writes to all devices: data, parity,
# logs, metadata; both for the updates alone.
#
#   SCHEMES="eplog elastic"  SIZES="1024 4096"  FILL=40 (percent of the volume that is data)  TURNS=3 (updates, times the keys)  SEED=1
#   STORES="elastripe rocksdb"  BUFFERS=eighth (of RocksDB's defaults, as the volume is small) or default
#   FILE_SIZE=128MiB (of a member)  FILES=/tmp  PYTHON=python3 (with the module rocksdict)  ELASTRIPE=target/release/elastripe
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
python=${PYTHON:-python3} fill=${FILL:-40} turns=${TURNS:-3} seed=${SEED:-1} file_size=${FILE_SIZE:-128MiB}
stores=${STORES:-elastripe rocksdb} buffers=${BUFFERS:-eighth}
for store in $stores; do
  case $store in elastripe | rocksdb) ;; *) echo "kv-writes.sh: STORES has '$store', expected elastripe, rocksdb" >&2; exit 1 ;; esac
done
case $buffers in eighth | default) export BUFFERS=$buffers ;; *) echo "kv-writes.sh: BUFFERS is '$buffers', expected eighth or default" >&2; exit 1 ;; esac
PATH=$PATH:/usr/sbin:/sbin
for tool in "$elastripe" redis-cli nbdinfo nbdfuse mkfs.ext4 "$python"; do
  command -v "$tool" >/dev/null || { echo "kv-writes.sh: no $tool (make build; apt-get install redis-tools libnbd-bin nbdfuse e2fsprogs)" >&2; exit 1; }
done
"$python" -c 'import rocksdict' 2>/dev/null ||
  { echo "kv-writes.sh: $python has no module rocksdict (python3 -m venv DIR; DIR/bin/pip install rocksdict; PYTHON=DIR/bin/python3)" >&2; exit 1; }

top=$(mktemp -d -p "${FILES:-/tmp}" kv-writes.XXXXXX)
work=$top/0
. "$repo/scripts/clients/lib.sh"
. "$repo/scripts/clients/keys.sh"
trap give_back_all EXIT
trap 'exit 130' INT TERM
give_back_all() { trap - EXIT; give_back; rm -rf "$top"; }

# device_bytes: written to all devices of the served array since it was assembled.
device_bytes() {
  "$elastripe" status "${members[0]}" --json | "$python" -c '
import json, sys
print(sum(device["traffic"]["written_bytes"] for device in json.load(sys.stdin)["devices"]))'
}

# drive PHASE TARGET KEYS BYTES: `load` or `update`, to a socket (unix:PATH) or a directory (rocksdb:PATH).
drive() { "$python" "$repo/scripts/clients/kv_writes.py" "$1" "$2" "$3" "$4" "$turns" "$seed"; }

fresh() { work=$top/$((++round)); mkdir -p "$work"; export ELASTRIPE_RUN_DIR=$work/run; }

round=0
echo "updates by Zipf 0.99, $turns times the keys, seed $seed; 6+2 members of $file_size, data $fill % of the volume; not synchronous; RocksDB's buffers: $buffers"
printf '%-8s %6s %8s %9s %14s %14s %10s\n' scheme value keys store user-MiB device-MiB per-byte
for scheme_wanted in ${SCHEMES:-eplog elastic}; do
  for bytes in ${SIZES:-1024 4096}; do
    for store in $stores; do
      fresh
      make_array "$scheme_wanted" "$file_size" >"$work/created"
      volume=$(sed -n 's/.*(\([0-9]*\) bytes).*/\1/p' "$work/created" | head -n 1)
      keys=$((volume * fill / 100 / (bytes + 16)))
      if [ $store = elastripe ]; then
        start_keys --create --sync flush
        drive load "unix:$work/keys" "$keys" "$bytes"
        before=$(device_bytes)
        drive update "unix:$work/keys" "$keys" "$bytes"
      else
        need_bridge
        start_server
        bridge_up
        make_fs ext4
        mount_fs ext4
        drive load "rocksdb:$mnt/db" "$keys" "$bytes"
        sync -f "$mnt"
        before=$(device_bytes)
        drive update "rocksdb:$mnt/db" "$keys" "$bytes"
        unmount_fs
      fi
      # Parity that is owed is part of the price.
      case $scheme in eplog | parity-log) "$elastripe" commit "${members[0]}" >/dev/null ;; esac
      after=$(device_bytes)
      [ $store = elastripe ] || bridge_down
      awk -v s="$scheme" -v b="$bytes" -v n="$keys" -v w="$store" -v d=$((after - before)) -v t="$turns" 'BEGIN {
        user = n * t * (b + 16)
        printf "%-8s %6d %8d %9s %14.1f %14.1f %10.2f\n", s, b, n, w, user / 1048576, d / 1048576, d / user
      }'
      give_back 2>/dev/null
      rm -rf "$work"
    done
  done
done
