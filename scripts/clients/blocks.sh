# Clients that speak NBD themselves. Sourced by clients.sh.

# nbdinfo sees what the server promises; `--map` walks the allocation from end to end.
test_info() {
  make_array "$1" 64MiB
  start_server
  timeout 300 nbdinfo --json "$uri" >"$work/info.json"
  local flag
  for flag in can_flush can_fua can_trim can_zero can_multi_conn can_cache can_df; do
    grep -q "\"$flag\": true" "$work/info.json" || { cat "$work/info.json"; fail "$flag is not offered"; }
  done
  grep -q '"is_read_only": false' "$work/info.json" || fail "the export is read-only"
  timeout 300 nbdinfo --list "$uri" | grep -q 'export=' || fail "no export is listed"
  local size mapped
  size=$(timeout 300 nbdinfo --size "$uri")
  [ "$size" -ge $((200 << 20)) ] || fail "6+2 x 64 MiB give only $size bytes"
  head -c 1MiB /dev/urandom >"$work/a"
  timeout 300 nbdcopy "$work/a" "$uri"
  mapped=$(timeout 300 nbdinfo --map "$uri" | awk '{ sum += $2 } END { printf "%d", sum }')
  [ "$mapped" = "$size" ] || fail "the map covers $mapped of $size bytes"
  timeout 300 nbdinfo --map "$uri" | head -n 1 | grep -q ' data' || fail "written bytes are not shown as data"
  stop_server
}

# nbdcopy in and out, several connections and requests at once, again after a restart.
test_copy() {
  make_array "$1" 64MiB
  head -c 96MiB /dev/urandom >"$work/a"
  start_server
  timeout 300 nbdcopy --flush -C 4 -R 64 "$work/a" "$uri"
  timeout 300 nbdcopy -C 4 "$uri" "$work/b"
  cmp -n $((96 << 20)) "$work/a" "$work/b"
  stop_server
  expect_status 0
  start_server
  timeout 300 nbdcopy -C 2 "$uri" "$work/b"
  cmp -n $((96 << 20)) "$work/a" "$work/b"
  [ -z "$(tail -c +$(((96 << 20) + 1)) "$work/b" | tr -d '\0' | head -c 1)" ] || fail "unwritten space is not zero"
  stop_server
  scrub
}

# qemu-img: a raw image, then a qcow2 image kept on the export; compared and checked.
test_qemu_img() {
  command -v qemu-img >/dev/null || skip "qemu-img is not installed"
  make_array "$1" 64MiB
  start_server
  local nbd=nbd:unix:$socket size
  size=$(timeout 300 nbdinfo --size "$uri")
  # Data, holes and zeros, as images have them.
  truncate -s "$size" "$work/a"
  head -c 20MiB /dev/urandom | dd of="$work/a" bs=1M seek=3 conv=notrunc status=none
  head -c 999424 /dev/urandom | dd of="$work/a" bs=512 seek=100001 conv=notrunc status=none
  timeout 300 qemu-img convert -n -f raw -O raw -W -m 8 "$work/a" "$nbd"
  timeout 300 qemu-img compare -f raw -F raw "$work/a" "$nbd"
  timeout 300 qemu-img convert -f raw -O qcow2 "$nbd" "$work/b.qcow2"
  timeout 300 qemu-img compare -f raw -F qcow2 "$work/a" "$work/b.qcow2"
  timeout 300 qemu-img create -q -f qcow2 "$nbd" 100M
  timeout 300 qemu-io -f qcow2 -c 'write -P 0x5a 1M 20M' -c 'discard 4M 2M' -c 'read -P 0x5a 1M 3M' -c 'read -P 0 4M 2M' "$nbd" |
    check_qemu_io
  timeout 300 qemu-img check -f qcow2 "$nbd"
  stop_server
  scrub
}

# qemu-io reports a wrong pattern in its output, not by its exit code.
check_qemu_io() {
  cat >"$work/qemu-io.out"
  ! grep -qiE 'failed|error|invalid' "$work/qemu-io.out" || { cat "$work/qemu-io.out"; fail "qemu-io is not content"; }
}

# qemu-io: patterns on odd borders, overwrites, zeros, discards, FUA, the last sector, a flush, after the loss of two devices.
test_qemu_io() {
  command -v qemu-io >/dev/null || skip "qemu-io is not installed"
  make_array "$1" 64MiB
  start_server
  local nbd=nbd:unix:$socket size last
  size=$(timeout 300 nbdinfo --size "$uri")
  last=$((size - 512))
  timeout 300 qemu-io -f raw -t none \
    -c 'write -P 0x11 0 1M' -c 'write -P 0x22 512 512' -c 'write -P 0x33 3584 1024' -c 'write -P 0x44 24064 49664' \
    -c 'read -P 0x11 0 512' -c 'read -P 0x22 512 512' -c 'read -P 0x11 1024 2560' -c 'read -P 0x33 3584 1024' \
    -c 'read -P 0x11 4608 19456' -c 'read -P 0x44 24064 49664' -c 'read -P 0x11 73728 64k' \
    -c 'write -f -P 0x55 100k 4k' -c 'write -z 200k 33k' -c 'discard 300k 100k' -c 'flush' \
    -c 'read -P 0x55 100k 4k' -c 'read -P 0 200k 33k' -c 'read -P 0x11 233k 67k' -c 'read -P 0 300k 100k' -c 'read -P 0x11 400k 4k' \
    -c "write -P 0x66 $last 512" -c "read -P 0x66 $last 512" \
    -c 'aio_write -P 0x77 2M 3M' -c 'aio_write -P 0x78 5M 3M' -c 'aio_flush' -c 'read -P 0x77 2M 3M' -c 'read -P 0x78 5M 3M' \
    "$nbd" | check_qemu_io
  if [ "$1" = eplog ]; then lose log1; else lose data6; fi
  lose data2
  expect_status 1
  timeout 300 qemu-io -f raw -t none \
    -c 'read -P 0x22 512 512' -c 'read -P 0x33 3584 1024' -c 'read -P 0x44 24064 49664' -c 'read -P 0 200k 33k' \
    -c 'read -P 0x77 2M 3M' -c 'write -P 0x79 2560k 1M' -c 'read -P 0x77 2M 512k' -c 'read -P 0x79 2560k 1M' \
    -c "read -P 0x66 $last 512" "$nbd" | check_qemu_io
  stop_server
  start_server
  expect_status 1
  timeout 300 qemu-io -f raw -t none -c 'read -P 0x79 2560k 1M' -c 'read -P 0x44 24064 49664' -c "read -P 0x66 $last 512" "$nbd" |
    check_qemu_io
  stop_server
}

# fio_nbd OPTION...: one verifying job over NBD.
fio_nbd() {
  timeout -k 5 90 fio --thread --name=job --ioengine=nbd --uri="$uri" --verify=crc32c --verify_fatal=1 --verify_dump=0 \
    --randrepeat=1 --aux-path="$work" --output-format=terse "$@" >>"$work/fio.log" 2>&1 ||
    { show_fio; fail "fio $*"; }
}

# fio: what it writes at random it reads back, in sizes down to one sector, over several connections, with trims.
test_fio() {
  command -v fio >/dev/null || skip "fio is not installed"
  fio --enghelp 2>/dev/null | grep -qw nbd || skip "this fio has no nbd engine"
  make_array "$1" 128MiB
  # shellcheck disable=SC2046
  start_server $(commits 5000)
  fio_nbd --rw=randwrite --bs=4k --iodepth=32 --size=128m
  fio_nbd --rw=randwrite --bsrange=512-128k --bs_unaligned=0 --blockalign=512 --iodepth=16 --size=64m --offset=128m
  fio_nbd --rw=randrw --bs=16k --iodepth=8 --size=48m --offset=256m --numjobs=2 --offset_increment=64m
  fio_nbd --rw=write --bs=1m --iodepth=4 --size=128m
  fio_nbd --rw=randtrimwrite --bs=64k --iodepth=4 --size=32m --offset=64m --verify=null
  stop_server
  scrub
}

# fio goes on while devices are lost and replaced, and reads back everything.
test_fio_faults() {
  command -v fio >/dev/null || skip "fio is not installed"
  fio --enghelp 2>/dev/null | grep -qw nbd || skip "this fio has no nbd engine"
  make_array "$1" 128MiB
  # shellcheck disable=SC2046
  start_server $(commits 5000)
  fio_nbd --rw=randwrite --bs=4k --iodepth=16 --size=96m --loops=3 &
  local load=$!
  sleep 1
  lose data3
  sleep 0.5
  if [ "$1" = eplog ]; then lose log0; else lose data7; fi
  expect_status 1
  sleep 0.5
  renew data3 3
  if [ "$1" = eplog ]; then renew log0 8; else renew data7 7; fi
  await_healthy
  wait "$load" || fail "fio during the loss of two devices"
  fio_nbd --rw=randrw --bs=8k --iodepth=16 --size=32m --offset=96m
  expect_status 0
  stop_server
  scrub
}
