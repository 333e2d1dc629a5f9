#!/usr/bin/env bash
# Real clients on the release binary: NBD tools, fio, qemu, file systems through nbdfuse and a loop device, crashes.
#
#   scripts/clients.sh [NAME...]     all tests, or those whose name begins with one of these; mariadb, postgres,
#                                    prometheus, page, ublk, vhost and nvme only so
#
#   CRASHES=3          how often the server is killed in each crash test
#   SEED=...           what the crash tests draw from (printed when one fails)
#   ELASTRIPE=FILE     the binary (target/release/elastripe)
#   PYTHON=python3     one that has the module redis (pip install redis)
#   GO_YCSB=go-ycsb    go-ycsb (go build ./cmd/go-ycsb in the source of the Go module github.com/pingcap/go-ycsb)
#   KEEP=1             keep the directory of a failed test
#   QEMU=FILE          nvme, vhost: an emulator (QEMU_DATA="DIRECTORY..." with what it needs, if that is elsewhere)
#   NVME_GUEST=DIRECTORY   nvme: with another kernel
#   WAITS=FILE         hung, cut: append to it how long a client waited at most
#
# Exit code 0 when nothing failed. A test that this machine cannot run is skipped, with the reason.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
crashes=${CRASHES:-3}
PATH=$PATH:/usr/sbin:/sbin
. "$repo/scripts/clients/lib.sh"
. "$repo/scripts/clients/blocks.sh"
. "$repo/scripts/clients/files.sh"
. "$repo/scripts/clients/databases.sh"
. "$repo/scripts/clients/watching.sh"
. "$repo/scripts/clients/members.sh"
. "$repo/scripts/clients/ublk.sh"
. "$repo/scripts/clients/nvme.sh"
. "$repo/scripts/clients/vhost.sh"
. "$repo/scripts/clients/keys.sh"

# name : seconds it may take : function and arguments
tests=(
  "info-eplog:60:test_info eplog"
  "info-raid:60:test_info raid"
  "copy-eplog:120:test_copy eplog"
  "copy-raid:120:test_copy raid"
  "qemu-img-eplog:120:test_qemu_img eplog"
  "qemu-img-raid:120:test_qemu_img raid"
  "qemu-io-eplog:120:test_qemu_io eplog"
  "qemu-io-raid:120:test_qemu_io raid"
  "fio-eplog:180:test_fio eplog"
  "fio-raid:180:test_fio raid"
  "fio-was:180:test_fio was"
  "fio-faults-eplog:180:test_fio_faults eplog"
  "fio-faults-raid:180:test_fio_faults raid"
  "ext4-eplog:180:test_fs eplog ext4"
  "xfs-eplog:180:test_fs eplog xfs"
  "ext4-raid:180:test_fs raid ext4"
  "ext4-elastic:180:test_fs elastic ext4"
  "hung-eplog:120:test_hung eplog"
  "hung-raid:120:test_hung raid"
  "hung-fail-eplog:120:test_hung_fail eplog"
  "cut-short-eplog:120:test_cut_short eplog"
  "cut-long-eplog:120:test_cut_long eplog"
  "cut-long-raid:120:test_cut_long raid"
  "crash-ext4-eplog:$((60 + 60 * crashes)):test_crash eplog ext4"
  "crash-xfs-eplog:$((60 + 60 * crashes)):test_crash eplog xfs"
  "crash-ext4-raid:$((60 + 60 * crashes)):test_crash raid ext4"
  "redis-eplog:180:test_redis eplog"
  "redis-elastic:180:test_redis elastic"
  "redis-crash-eplog:$((60 + 60 * crashes)):test_redis_crash eplog"
  "redis-crash-raid:$((60 + 60 * crashes)):test_redis_crash raid"
  "python-redis-eplog:$((180 + 60 * crashes)):test_python_redis eplog"
  "python-redis-elastic:$((180 + 60 * crashes)):test_python_redis elastic"
  "ycsb-eplog:300:test_ycsb eplog"
  "ycsb-raid:300:test_ycsb raid"
  "crash-ext4-elastic:$((60 + 60 * crashes)):test_crash elastic ext4"
)
# Only when they are named: what they use is not part of the set-up (apt-get install mariadb-server postgresql prometheus chromium).
by_name=(
  "mariadb-eplog:$((120 + 60 * crashes)):test_mariadb eplog"
  "mariadb-elastic:$((120 + 60 * crashes)):test_mariadb elastic"
  "postgres-eplog:$((120 + 60 * crashes)):test_postgres eplog"
  "postgres-elastic:$((120 + 60 * crashes)):test_postgres elastic"
  "prometheus:120:test_prometheus"
  "page:120:test_page"
  "ublk:960:test_ublk"
  "vhost-eplog:960:test_vhost eplog"
  "vhost-raid:960:test_vhost raid"
  "vhost-elastic:960:test_vhost elastic"
  "nvme:960:test_nvme"
)
[ $# -eq 0 ] || tests+=("${by_name[@]}")

# One test, in a process of its own: `clients.sh --inner DIRECTORY FUNCTION ARGUMENT...`.
if [ "${1:-}" = --inner ]; then
  work=$2
  shift 2
  export ELASTRIPE_RUN_DIR=$work/run
  trap give_back EXIT
  trap 'exit 1' TERM INT
  "$@"
  exit 0
fi

[ -x "$elastripe" ] || { echo "clients.sh: no $elastripe; run make build first" >&2; exit 1; }
command -v nbdinfo >/dev/null || { echo "clients.sh: no nbdinfo; run make setup first" >&2; exit 1; }

runner=
finish() {
  trap - EXIT INT TERM
  [ -z "$runner" ] || { kill -TERM "$runner" 2>/dev/null && wait "$runner"; } || true
  [ -z "${work:-}" ] || { give_back; rm -rf "$work"; }
}
trap finish EXIT
trap 'exit 130' INT TERM

passed=0 failed=0 skipped=0
run_test() {
  local name=$1 limit=$2 code=0 start=$SECONDS
  shift 2
  work=$(mktemp -d --suffix=.elastripe-clients)
  timeout -k 30 "$limit" "$0" --inner "$work" "$@" </dev/null >"$work/log" 2>&1 &
  runner=$!
  wait "$runner" || code=$?
  runner=
  give_back
  case $code in
    0) passed=$((passed + 1)); echo "ok $name ($((SECONDS - start)) s)" ;;
    77) skipped=$((skipped + 1)); echo "SKIPPED $name: $(cat "$work/skipped")" ;;
    *)
      failed=$((failed + 1))
      if [ $((SECONDS - start)) -ge "$limit" ]; then echo "FAIL: not done after $limit s" >>"$work/log"; fi
      if [ $code -eq 124 ]; then echo "FAIL: a client did not come to an end" >>"$work/log"; fi
      echo "FAILED $name ($((SECONDS - start)) s)"
      tail -n 40 "$work/log" | sed 's/^/    /'
      [ ! -s "$work/server.log" ] || { echo "    -- server"; tail -n 15 "$work/server.log" | sed 's/^/    /'; }
      if [ -n "${KEEP:-}" ]; then echo "    -- kept: $work"; work=; fi
      ;;
  esac
  [ -z "$work" ] || rm -rf "$work"
  work=
}

for entry in "${tests[@]}"; do
  IFS=: read -r name limit command <<<"$entry"
  wanted=$([ $# -eq 0 ] && echo yes || true)
  for prefix in "$@"; do [[ $name != "$prefix"* ]] || wanted=yes; done
  [ -z "$wanted" ] || run_test "$name" "$limit" $command
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
