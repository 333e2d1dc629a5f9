# A: data or redundancy at risk. Sourced, not run.

check_A1() {
  raid_of_three
  serve a0 a1 a2 -- --rebuild-rate 1KiB/s
  need qemu-io
  io "write -P 1 0 16M" "flush"
  # The server stops while the command waits.
  run 0 fail a0 --device data2 $(yes_of fail)
  timeout -k 2 240 "$elastripe" replace a0 --device data2 --with n2 --file-size 32MiB --wait >waiting.log 2>&1 &
  local waiting=$!
  note process $waiting
  rebuilding() { { "$elastripe" status a0 --json || true; } | grep -q '"rebuilding"'; }
  soon 20 rebuilding || fail "no rebuild began: $(cat waiting.log)"
  # Another command that names the same file is refused, and leaves it alone.
  run x replace a0 --device data0 --with n2 --file-size 32MiB
  [ -f n2 ] || fail "a refused replace has deleted n2, which is in service"
  end_server TERM
  wait $waiting || true
  [ -f n2 ] || fail "replace --wait has deleted n2, which is in service"
  run 1 status a0 a1 n2
  serve a0 a1 n2
  has_line 'data2 is rebuilt'
  io "read -P 1 0 16M"
}

check_A2() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2 -- --rebuild-rate 1KiB/s
  io "write -P 1 0 16M" "flush"
  run 0 fail a0 --device data0 $(yes_of fail)
  run 0 replace a1 --device data0 --with n0 --file-size 32MiB
  end_server TERM
  # After a start.
  serve n0 a1 a2
  has_line 'data0 is rebuilt'
  # And while it runs.
  run 0 fail a1 --device data2 $(yes_of fail)
  run 0 replace a1 --device data2 --with n2 --file-size 32MiB
  has_line 'data2 is rebuilt'
  io "read -P 1 0 16M"
}

check_A3() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2 -- --commit-idle off
  io "write -P 1 0 8M" "flush"
  end_server TERM
  local start
  start=$(data_start a0)
  zero a1 "$start" 65536
  zero a2 "$start" 65536
  serve a0 a1 a2
  LIMIT=240 run x scrub a0 --wait
  io_fails "read -P 1 0 8M"
  run x status a0
  says_not "all data can be read" "state: *HEALTHY"
  says "lost"
  run x status a0 -v
  says "LBA|sector|byte"
  run x status a0 --json
  says '"lost'
  # Lost data is a state that a restart does not forget.
  end_server TERM
  run x status a0 a1 a2
  says_not "state: *HEALTHY"
  serve a0 a1 a2
  run x status a0
  # The way out: write it anew.
  io "write -P 2 0 8M" "flush"
  LIMIT=240 run 0 scrub a0 --wait
  run 0 status a0
  io "read -P 2 0 8M"
}

check_A4() {
  local size
  generate() { run "$1" trace generate --profile uniform --seed 1 --requests 100 "$2" --force; }
  mkfifo pipe
  cat pipe >read_from_pipe &
  note process $!
  generate 0 pipe
  [ -p pipe ] || fail "the FIFO is gone"
  wait
  size=$(stat -c %s read_from_pipe)
  [ "$size" -gt 1000 ] || fail "$size bytes came through the FIFO"
  echo old >target
  ln -s target link
  generate 0 link
  [ -L link ] || fail "the link is gone"
  if [ "$(id -u)" -eq 0 ] && mknod node c 1 3 2>/dev/null; then
    generate 0 node
    [ -c node ] || fail "the device node is gone"
    mknod full c 1 7
    generate x full
    [ -c full ] || fail "the full device's node is gone"
  fi
}

check_A5() {
  raid_of_three
  run 0 add a0 a1 a2 --spare s0 --file-size 32MiB
  rm a1
  serve a0 a2 s0 -- --degraded
  has_line 'takes the place of data1'
  has_line 'data1 is rebuilt'
  run 0 status a0
  end_server TERM
  # And a spare can be taken away.
  run 0 add a0 s0 a2 --spare s1 --file-size 32MiB
  run 0 remove a0 s0 a2 s1 --spare s1
}

check_A6() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2
  mkfifo commands
  qemu-io -f raw "$(uri)" <commands >io.log 2>&1 &
  note process $!
  exec 7>commands
  echo "write -P 1 0 64k" >&7
  soon 20 grep -q wrote io.log || fail "no client: $(cat io.log)"
  run x stop a0
  says "client|connected|in use"
  kill -0 "$server" || fail "stop has ended the server under a client"
  run 0 stop a0 --force
  exec 7>&-
  run 0 status a0 a1 a2
}

check_A7() {
  run 0 create --scheme raid --consistency resync --parity 1 --data a0 a1 a2 --file-size 256MiB
  # What was never written takes a scrub no time.
  printf 'ts_us,dev,op,offset,len\n0,0,W,0,16777216\n' >trace.csv
  run 0 replay a0 a1 a2 --trace trace.csv
  run 0 fail a0 a1 a2 --device data0 $(yes_of fail)
  # The shell starts what runs in the background with SIGINT ignored.
  env --default-signal=INT "$elastripe" scrub a1 a2 --rate 1MiB/s >scrub.log 2>&1 &
  local scrub=$! code=0
  note process $scrub
  sleep 0.5
  kill -INT $scrub 2>/dev/null || fail "the scrub ended before it could be interrupted: $(cat scrub.log)"
  wait $scrub || code=$?
  echo "the interrupted scrub ended with $code: $(cat scrub.log)"
  run 1 status a1 a2
  run 0 serve a1 a2 --run true
}

check_A10() {
  need qemu-io
  [ "$(id -u)" -eq 0 ] || skip "mounting a small file system needs root"
  mkdir small
  mount -t tmpfs -o size=24M none small 2>/dev/null || skip "mounting is not permitted here"
  note mount "$work/small"
  run 0 create --scheme raid --parity 1 --data small/a0 a1 a2 --file-size 32MiB
  serve small/a0 a1 a2
  io "write -P 1 0 4M" "flush"
  dd if=/dev/zero of=small/filler bs=64k status=none 2>/dev/null || true
  io_fails "write -P 2 8M 16M" "flush"
  run x status a1 --json
  says_not '"state": "failed"'
  io "read -P 1 0 4M"
  rm small/filler
  works_again() { "$elastripe" status a1 >/dev/null; }
  soon 20 works_again || { run 0 status a1; }
  io "write -P 3 8M 4M" "flush" "read -P 3 8M 4M"
  end_server TERM
  run 0 status small/a0 a1 a2
}

check_A11() {
  need qemu-io nbdkit nbdfuse fusermount3
  mkdir fuse
  truncate -s 32M backing
  nbdkit -f -U "$work/device" file backing 2>/dev/null &
  local device=$!
  note process $device
  soon 10 test -S device || fail "nbdkit did not start"
  nbdfuse "$work/fuse" "nbd+unix:///?socket=$work/device" 2>/dev/null &
  note process $!
  note fuse "$work/fuse"
  soon 10 test -f fuse/nbd || skip "FUSE is not permitted here"
  run 0 create --scheme raid --parity 1 --data fuse/nbd a1 a2 --file-size 32MiB
  serve fuse/nbd a1 a2 -- --device-timeout 1s
  io "write -P 1 0 4M" "flush"
  kill -STOP $device
  io "write -P 2 1M 1M" "flush" "read -P 2 1M 1M" "read -P 1 0 1M"
  run 1 status a1 --json
  says '"failed"'
  kill -CONT $device
}

check_A12() {
  grep -qi 'blkid' "$repo/docs/cli.md" || fail "docs/cli.md does not say that blkid and mkfs do not know members"
  local rules
  rules=$(find "$repo" -name '*elastripe*.rules' -not -path '*/target/*' | head -1)
  [ -n "$rules" ] || fail "there is no udev rule"
  # The rule asks the program itself.
  raid_of_three
  run 0 examine a0 --export
  says "ID_FS_TYPE|ID_FS_USAGE"
}
