# Members that other processes or other hosts serve: they hang, their connection is cut, they come back. Sourced, not run.

# member_up: a disk whose content a process has, as the kernel sees it; sets `far` (that process) and `members[0]`.
# "other host" (nbdkit with a file) <- "initiator" that asks again (nbdkit, filter retry) <- nbdfuse <- loop device
member_up() {
  local size=$1
  mkdir -p "$work/fuse" "$work/members"
  truncate -s "$size" "$work/members/far"
  far_up
  nbdkit -f -U "$work/near.sock" --filter=retry nbd socket="$work/far.sock" \
    retries=1000 retry-delay=1 retry-exponential=no </dev/null >>"$work/near.log" 2>&1 &
  note "process $!"
  soon 10 test -S "$work/near.sock" || fail "no initiator: $(tail -n 3 "$work/near.log")"
  note "fuse $work/fuse"
  nbdfuse -C 4 "$work/fuse/" "nbd+unix:///?socket=$work/near.sock" </dev/null >>"$work/nbdfuse.log" 2>&1 &
  note "process $!"
  soon 10 test -e "$work/fuse/nbd" || fail "nbdfuse shows nothing after 10 s: $(tail -n 3 "$work/nbdfuse.log")"
  disk=$(timeout 10 losetup --direct-io=on --show -f "$work/fuse/nbd") || skip "no loop device to be had"
  note "loop $disk"
}

# far_up: the other host serves its disk.
far_up() {
  rm -f "$work/far.sock"
  nbdkit -f -U "$work/far.sock" file "$work/members/far" </dev/null >>"$work/far.log" 2>&1 &
  far=$!
  note "process $far"
  soon 10 test -S "$work/far.sock" || fail "no other host: $(tail -n 3 "$work/far.log")"
}

# far_down: the connection is cut, and whatever was under way on it with it.
far_down() { end_process "$far" KILL; wait "$far" 2>/dev/null || true; }

need_far_members() {
  need_bridge
  local tool
  for tool in nbdkit fio; do command -v $tool >/dev/null || skip "$tool is not installed"; done
  fio --enghelp 2>/dev/null | grep -qw nbd || skip "this fio has no nbd engine"
  nbdkit --filter=retry null --version >/dev/null 2>&1 || skip "this nbdkit has no filter retry"
  nbdkit nbd --version >/dev/null 2>&1 || skip "this nbdkit has no plugin nbd"
}

# json WORDS...: a value of the status, by a path as jq has it but without jq.
json() {
  timeout 20 "$elastripe" status "${members[1]}" --json >"$work/status.json" 2>/dev/null || true
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
value = value[0] if isinstance(value, list) else value
for word in sys.argv[2:]:
    value = next(v for v in value["devices"] if v["name"] == word[1:]) if word[0] == "@" else value[word]
print(value)' "$work/status.json" "$@"
}
state_is() { [ "$(json "@data0" state)" = "$1" ]; }

# far_array SCHEME: an array of which member data0 is on another host, served, and filled.
far_array() {
  need_far_members
  command -v python3 >/dev/null || skip "python3 is not installed"
  member_up 256M
  scheme=$1
  members=("$disk" "$work/members/ssd1" "$work/members/ssd2" "$work/members/ssd3")
  local options=(--scheme "$scheme" --parity 1 --file-size 256MiB --data "${members[@]}")
  if [ "$scheme" = eplog ]; then
    members+=("$work/members/log0")
    options+=(--log "$work/members/log0")
  fi
  "$elastripe" create "${options[@]}" || fail "create"
  start_server --device-timeout 3s
  fio_nbd --rw=write --bs=1m --iodepth=4 --size=160m
}

# load_up: reads and writes of 4 KiB for so long, verified; their longest wait ends up in $work/load.json.
load_up() {
  timeout -k 5 120 fio --thread --name=load --ioengine=nbd --uri="$uri" --rw=randrw --bs=4k --iodepth=8 --size=32m --offset=32m \
    --time_based --runtime="$1" --aux-path="$work" --output-format=json --output="$work/load.json" >>"$work/fio.log" 2>&1 &
  load=$!
  note "process $load"
}
# load_down LIMIT_MS: nothing failed, and nothing waited for longer: the timeout, and what a busy disk takes to flush when the
# others are told.
load_down() {
  wait "$load" || { show_fio; fail "fio while the member was away"; }
  local waited
  waited=$(python3 -c 'import json, sys
text = open(sys.argv[1]).read()
job = json.loads(text[text.index("{"):])["jobs"][0]
print(int(max(job[kind]["clat_ns"]["max"] for kind in ("read", "write")) / 1e6))' "$work/load.json")
  echo "the longest wait of a client: $waited ms"
  [ -z "${WAITS:-}" ] || echo "${FUNCNAME[1]} $scheme: $waited ms" >>"$WAITS"
  [ "$waited" -le "$1" ] || fail "a client waited for $waited ms, at most $1 were expected"
}

# back_by_online: the member is taken back, and far less than all of it is rebuilt.
back_by_online() {
  soon 20 timeout 60 "$elastripe" online "${members[1]}" --device data0 --with "$disk" --wait ||
    fail "online: $(timeout 60 "$elastripe" online "${members[1]}" --device data0 --with "$disk" 2>&1)"
  local rebuilt
  rebuilt=$(json last_work chunks_rebuilt)
  echo "chunks rebuilt: $rebuilt"
  state_is healthy || fail "data0 is $(json @data0 state)"
  # The member has 40,960 chunks of 4 KiB with content; 32 MiB were written at random.
  [ "$rebuilt" -lt 14000 ] || fail "$rebuilt chunks were rebuilt"
  timeout 300 "$elastripe" scrub "${members[1]}" --wait | tee "$work/scrub"
  grep -q "0 chunks healed" "$work/scrub" || fail "the scrub found something"
}

# The server of a member stops under load: clients wait for the timeout, then the array goes on degraded.
test_hung() {
  far_array "$1"
  load_up 14
  sleep 3
  kill -STOP "$far"
  soon 3 eval '[ "$(json @data0 oldest_request_ms)" != None ] && [ "$(json @data0 oldest_request_ms)" -gt 1000 ]' ||
    fail "status does not show the age of the oldest request"
  soon 6 state_is failed || fail "data0 is $(json @data0 state) 6 s after it fell silent"
  [ "$(json state)" = degraded ] || fail "the array is $(json state)"
  load_down 6000
  kill -CONT "$far"
  back_by_online
  stop_server
}

# The same without a timeout: `fail` frees what waits, at once.
test_hung_fail() {
  far_array "$1"
  stop_server
  start_server --device-timeout off
  load_up 12
  sleep 2
  kill -STOP "$far"
  soon 8 eval '[ "$(json @data0 oldest_request_ms)" != None ] && [ "$(json @data0 oldest_request_ms)" -gt 4000 ]' ||
    fail "status does not show the age of the oldest request"
  state_is healthy || fail "data0 is $(json @data0 state) without a timeout"
  timeout 5 "$elastripe" fail "${members[1]}" --device data0 --yes || fail "fail: exit code $?"
  load_down 8000
  kill -CONT "$far"
  back_by_online
  stop_server
}

# The connection to another host is cut and is back within the timeout: nobody is out of service.
test_cut_short() {
  far_array "$1"
  load_up 10
  sleep 2
  far_down
  sleep 1
  far_up
  load_down 6000
  state_is healthy || fail "data0 is $(json @data0 state) after a short cut"
  timeout 300 "$elastripe" scrub "${members[1]}" --wait | grep "0 chunks healed" || fail "the scrub found something"
  stop_server
}

# The same for longer than the timeout.
test_cut_long() {
  far_array "$1"
  load_up 14
  sleep 2
  far_down
  soon 8 state_is failed || fail "data0 is $(json @data0 state) 8 s after the connection was cut"
  load_down 6000
  far_up
  back_by_online
  stop_server
}
