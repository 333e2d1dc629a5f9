# C: in the way. Sourced, not run.

check_C1() {
  local size
  size=$(df --output=avail -k . | tail -1)
  for i in 0 1 2 3 4 5; do truncate -s 4T "big$i" 2>/dev/null || skip "files of 4 TiB cannot be made in $work ($size KiB free)"; done
  run 0 create --scheme raid --parity 2 --data big0 big1 big2 big3 big4 big5
  says "memory"
  run 0 status big0 big1 big2 big3 big4 big5
  # Small chunks fit, too: the table of chunks takes no more than it is given.
  run 0 create --scheme raid --parity 2 --data s0 s1 s2 s3 s4 s5 --file-size 4TiB --chunk-size 4KiB --memory 1GiB
  says "memory"
  run 0 status s0 s1 s2 s3 s4 s5
  # What cannot be served is refused before anything is made.
  run x create --scheme raid --parity 2 --data x0 x1 x2 x3 x4 x5 --file-size 4TiB --chunk-size 4KiB --memory 32MiB
  says "--memory"
  [ ! -e x0 ] || fail "a refused create has left x0"
}

check_C2() {
  run x bench --device memory --volume-size 1TiB
  says "memory"
  says_not "backtrace|RUST_BACKTRACE"
}

check_C3() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2 -- --rebuild-rate 1KiB/s
  io "write -P 1 0 16M" "flush"
  run 0 scrub a0
  "$elastripe" --help >said
  says "rate"
  run 0 rate a0 --help
  run 0 scrub a0 --help
  says "--stop" "--pause"
}

check_C4() {
  need qemu-io
  run 0 create --scheme raid --parity 1 --data a0 a1 a2 --file-size 512MiB
  serve a0 a1 a2
  io "write -P 1 0 4M" "flush"
  run 0 fail a0 --device data0 $(yes_of fail)
  run 0 replace a1 --device data0 --with n0 --file-size 512MiB --wait
  # Next to nothing was ever written, so next to nothing is read.
  run 0 status a1 --json
  local read
  read=$(grep -o '"read_bytes": [0-9]*' said | grep -o '[0-9]*' | sort -n | tail -1)
  [ "$read" -lt $((200 << 20)) ] || fail "a rebuild of 4 MiB has read $read bytes of a member"
}

check_C5() {
  raid_of_three
  truncate -s 32M foreign
  run 0 scan .
  says "a0|raid"
  says_not "panicked"
}

check_C6() {
  grep -rlq 'Type=notify' "$repo/contrib" || fail "there is no systemd unit"
  raid_of_three
  serve a0 a1 a2 -- --nbd tcp:0.0.0.0:0
  grep -qiE 'anybody|anyone|no authentication|not encrypted|every (host|address)' server.log || fail "no warning: $(cat server.log)"
}

check_C7() {
  run 0 create --scheme raid --parity 1 --data a0 a1 a2 --file-size 64M
  [ "$(stat -c %s a0)" -eq $((64 << 20)) ] || fail "64M is $(stat -c %s a0) bytes"
  run 0 create --scheme raid --parity 1 --data b0 b1 b2 --file-size 1G
}

check_C8() {
  run 0 create --parity 1 --data a0 a1 a2 --log l0 --file-size 32MiB
  says "eplog"
}

check_C9() {
  grep -q 'ts_us,dev,op,offset,len' "$repo/docs/replay.md" || fail "docs/replay.md does not show the common form"
}

check_C10() {
  trace_of t.csv
  run 0 simulate --trace t.csv --ssd was-ssd --compare raid,eplog --sweep seed=1,2 --geometry 4+1 --out out
  local twice
  twice=$(head -1 out/results.csv | tr , '\n' | sort | uniq -d)
  [ -z "$twice" ] || fail "columns that are there twice: $twice"
  for column in lifespan trace geometry ssd; do
    head -1 out/results.csv | tr , '\n' | grep -qx "$column" || fail "no column $column"
  done
  run 0 plot out/results.csv --x scheme --y lifespan --over seed --out p.svg
}

check_C11() {
  trace_of t-1.csv 1
  trace_of t-2.csv 2
  run 0 simulate --ssd was-ssd --scheme raid --sweep trace=t-1.csv,t-2.csv --json
  run 0 simulate --ssd was-ssd --scheme raid --trace 't-{seed}.csv' --sweep seed=1,2 --json
}

check_C12() {
  trace_of t.csv
  local grid=(simulate --trace t.csv --ssd was-ssd --sweep queue-depth=1,2,4,8 --compare raid,eplog --out out --jobs 1) first
  "$elastripe" "${grid[@]}" >first.log 2>&1 &
  first=$!
  "$elastripe" "${grid[@]}" >second.log 2>&1 || true
  wait $first || true
  run 0 "${grid[@]}"
  [ "$(tail -n +2 out/results.csv | wc -l)" -eq 8 ] || fail "$(wc -l <out/results.csv) lines, expected 9"
  run 0 "${grid[@]}" --shard 1/2
}

check_C13() {
  printf 'scheme,depth,seed,y\nraid,1,1,1\nraid,1,2,2\nraid,2,1,3\nraid,2,2,6\n' >t.csv
  run 0 plot t.csv --x scheme --y y --over depth,seed --out p.svg
}

check_C14() {
  run 0 flash run --workload uniform --logical-size 16MiB --seed 1 --json
  says_not 'WearLevelling' '\{ dynamic'
  ! grep '"Greedy"' said || fail "a value of JSON is not what the option takes"
}

check_C15() {
  echo 'ts_us,dev,op,offset,len' >empty.csv
  LIMIT=20 "$elastripe" trace info empty.csv >said 2>&1 || true
  says_not "unknown trace format"
  printf '\xef\xbb\xbfts_us,dev,op,offset,len\n0,0,W,0,4096\n' >bom.csv
  LIMIT=20 "$elastripe" trace info bom.csv >said 2>&1 || true
  says_not 'operation is "op"'
  printf '\xfd7zXZ\x00rest' >t.xz
  run x trace info t.xz
  says "xz"
  truncate -s 1M blank
  run x examine blank
  says_not '\[00, 00|\[4a'
  says "no member|not a member|no superblock"
}

check_C16() {
  run 0 create --scheme raid --parity 1 --data a0 a1 a2 --file-size 32MiB --name tank
  run x create --scheme raid --parity 1 --data a0 b1 b2 --file-size 32MiB
  says "tank"
  run x create --scheme raid --parity 1 --data c0 c1 c2 --file-size 32MiB --reserve 10%
  run 0 create --scheme eplog --parity 1 --data d0 d1 d2 --log l0 --file-size 32MiB
  serve a0 a1 a2
  run 0 status a0
  says_not "BYTES IN"
}

check_C17() {
  need python3
  trace_of t.csv
  # As pandas.read_csv with comment='#', or without it where the comment's line has no comma.
  python3 - <<'PY' || fail "a reader of CSV cannot read it"
import csv
rows = list(csv.reader(open("t.csv")))
widths = {len(row) for row in rows if not (row and row[0].startswith("#"))}
assert widths == {5}, widths
comments = [row for row in rows if row and row[0].startswith("#")]
assert all(len(row) == 1 for row in comments), comments
PY
}
