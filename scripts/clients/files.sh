# File systems on the served array, through nbdfuse and a loop device; with crashes of the server. Sourced by clients.sh.

# A tree with a few thousand files, the same on every machine that has the sources, and its checksums.
plant_tree() {
  local from=$repo copy
  for copy in 1 2 3; do
    mkdir "$1/tree$copy"
    (cd "$from" && tar cf - --exclude=./target --exclude=./python/target --exclude=./.git .) | tar xf - -C "$1/tree$copy"
  done
  mkdir "$1/many"
  local i
  for i in $(seq 1500); do echo "file $i of many" >"$1/many/$i"; done
  head -c 24MiB /dev/urandom >"$1/large"
  (cd "$1" && find . -type f -exec sha256sum {} +) >"$2"
}

verify_tree() { (cd "$1" && sha256sum --quiet -c "$2") || fail "files differ from what was copied"; }

# Where `name` of the members is in the list.
second_loss() { if [ "$scheme" = eplog ]; then echo log1 9; else echo data5 5; fi; }

# mkfs, a tree with checksums, fio with verification, deletions and trim, a lost and a replaced device, fsck.
test_fs() {
  need_bridge
  need_file_system "$2"
  make_array "$1" 128MiB
  # shellcheck disable=SC2046
  start_server $(commits 5000)
  bridge_up
  make_fs "$2"
  mount_fs "$2"
  plant_tree "$mnt" "$work/sums"
  # From the devices, not from the page cache.
  unmount_fs
  check_fs "$2"
  mount_fs "$2"
  verify_tree "$mnt" "$work/sums"
  lose data1
  timeout -k 5 90 fio --thread --name=files --directory="$mnt" --size=48m --rw=randwrite --bsrange=4k-64k --ioengine=libaio --iodepth=16 \
    --direct=1 --fsync=64 --verify=crc32c --verify_fatal=1 --verify_dump=0 --aux-path="$work" \
    --output-format=terse >>"$work/fio.log" 2>&1 || { show_fio; fail "fio on $2"; }
  expect_status 1
  renew data1 1
  await_healthy
  rm -r "$mnt/tree2" "$mnt"/files*
  grep -v '\./tree2/' "$work/sums" >"$work/sums-left"
  timeout 300 fstrim "$mnt" || fail "fstrim"
  verify_tree "$mnt" "$work/sums-left"
  unmount_fs
  check_fs "$2"
  bridge_down
  stop_server
  scrub
}

# The server dies under load again and again; each time the file system comes back clean, with all that was synced. A slow
# rebuild is under way when it happens, in one round of three.
test_crash() {
  need_bridge
  need_file_system "$2"
  command -v rustc >/dev/null || skip "rustc is not installed"
  rustc --edition 2024 -O -o "$work/ledger" "$repo/scripts/clients/ledger.rs"
  local seed=${SEED:-$(date +%s)} round
  RANDOM=$seed
  echo "seed $seed, $crashes crashes"
  make_array "$1" 128MiB
  # shellcheck disable=SC2046
  start_server $(commits 2000) --rebuild-rate 60MiB/s
  bridge_up
  make_fs "$2"
  mount_fs "$2"
  # Whole and durable, so that after each crash every block of it is old or new, never torn or lost.
  fio_file --rw=write --bs=1m --end_fsync=1 --do_verify=0 || fail "fio on a fresh $2"
  for round in $(seq "$crashes"); do
    echo "-- crash $round"
    crash_under_load "$round"
    recover "$2"
  done
  if [ $((crashes % 3)) -eq 2 ]; then make_whole; fi
  await_healthy
  unmount_fs
  check_fs "$2"
  bridge_down
  stop_server
  scrub
  local recoveries
  recoveries=$(grep -c 'not stopped in order' "$work/server.log" || true)
  [ "$recoveries" -eq "$crashes" ] || fail "$recoveries recoveries after $crashes crashes: the test did not test"
}

# Replaces what crash_under_load took out.
make_whole() {
  local name index
  read -r name index < <(second_loss)
  renew data0 0
  renew "$name" "$index"
}

# fio_file OPTION...: the file that the load overwrites.
fio_file() {
  timeout -k 5 90 fio --thread --name=load --filename="$mnt/load" --size=48m --bs=4k --direct=1 --ioengine=libaio --iodepth=16 \
    --verify=crc32c --verify_interval=4096 --verify_fatal=1 --verify_dump=0 --aux-path="$work" --output-format=terse "$@" \
    >>"$work/fio.log" 2>&1
}

# pause FROM TO: a random time in milliseconds.
pause() {
  local ms=$(($1 + RANDOM % ($2 - $1)))
  sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# Writers at work; in some rounds devices are lost or being rebuilt; then SIGKILL at a random moment.
crash_under_load() {
  fio_file --rw=randwrite --do_verify=0 --time_based --runtime=60 --fsync=32 --verify_backlog=64 &
  local load=$! writer
  timeout -k 5 60 "$work/ledger" write "$mnt" "$work/ledger.txt" "$seed" 50 &
  writer=$!
  pause 1000 2000
  local name index
  read -r name index < <(second_loss)
  case $(($1 % 3)) in
    2) lose data0; lose "$name" ;;                          # killed when degraded
    0) renew data0 0; renew "$name" "$index" ;; # killed in the middle of a rebuild
  esac
  pause 100 700
  kill_server
  # Both get errors now; fio must not have met wrong content before.
  soon 30 gone "$writer" || fail "the writer hangs 30 s after the server's end"
  soon 30 gone "$load" || fail "fio hangs 30 s after the server's end"
  wait "$writer" || fail "the writer: exit code $?"
  wait "$load" || true
  ! grep -E '^(verify|crc32c):|bad (magic|header)' "$work/fio.log" || fail "fio met wrong content"
  timeout -k 1 30 umount "$mnt" || umount -l "$mnt"
  bridge_down
}

# Serves again, lets the file system replay its journal, then looks at everything.
recover() {
  # shellcheck disable=SC2046
  start_server $(commits 2000) --rebuild-rate 60MiB/s
  bridge_up
  mount_fs "$1"
  unmount_fs
  check_fs "$1"
  mount_fs "$1"
  timeout 300 "$work/ledger" check "$mnt" "$work/ledger.txt" "$seed" || fail "what was synced is not there (seed $seed)"
  fio_file --rw=read || { show_fio; fail "blocks that fio had written are not whole"; }
}
