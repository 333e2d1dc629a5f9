# B: misleads whoever watches. Sourced, not run.

check_B1() {
  run 4 status
  raid_of_three
  serve a0 a1 a2
  run 0 status
  end_server KILL
  run 2 status
  run 2 status --json
  says_not '^\[\]'
}

check_B2() {
  raid_of_three
  run 4 status a0
  says "INCOMPLETE"
  says_not "state: *FAILED"
  run 0 status a0 a1 a2
}

check_B3() {
  raid_of_three
  local i
  for i in 0 1 2; do cp a$i c$i; done
  serve a0 a1 a2
  run x serve c0 c1 c2 --nbd "unix:$work/other"
  says "copy|served"
  run 0 status a0 --json
  says '"source": "served"'
  run 0 status c0 c1 c2 --json
  says '"source": "stopped"'
  run 0 stop a1
}

check_B4() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2
  io "write -P 1 0 8M" "flush"
  end_server TERM
  zero a1 "$(data_start a1)" 1048576
  serve a0 a1 a2
  io "read -P 1 0 8M"
  "$elastripe" status a0 >said || true
  says "checksum error|wrong data|chunks.*wrong" "data1"
  end_server TERM
  # A restart forgets nothing; `clear` does.
  serve a0 a1 a2
  "$elastripe" status a0 >said || true
  says "checksum error|wrong data|chunks.*wrong"
  LIMIT=240 run 0 scrub a0 --wait
  run 0 clear a0
  run 0 status a0
  says_not "checksum error|wrong data|chunks.*wrong"
}

check_B5() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2
  io "write -P 1 0 8M" "flush"
  truncate -s 8M a1
  "$elastripe" scrub a0 --wait >said 2>&1 || true
  cat said
  local code=0
  "$elastripe" status a0 >said || code=$?
  # Either it is out of service, or it has been made whole.
  [ $code -ne 0 ] || [ "$(stat -c %s a1)" -ge $((32 << 20)) ] || fail "status says healthy with a truncated member"
  end_server TERM
  truncate -s 8M a1
  serve a0 a1 a2 -- --degraded
  run 1 status a0
  io "read -P 1 0 8M"
}

check_B6() {
  need qemu-io
  raid_of_three
  serve a0 a1 a2
  io "write -P 1 0 8M" "flush"
  LIMIT=240 run 0 scrub a0 --wait
  grep -qi 'scrub' server.log || fail "the log has no line about the scrub"
  run 0 status a0
  says "scrub.*(0 errors|repaired)"
  run 0 status a0 --json
  says 'last_scrub'
  end_server TERM
  run 0 status a0 a1 a2
  says "scrub.*(0 errors|repaired)"
}

check_B7() {
  raid_of_three
  serve a0 a1 a2
  kill -USR1 "$server"
  kill -HUP "$server" || true
  sleep 0.5
  if kill -0 "$server" 2>/dev/null; then run 0 status a0; end_server TERM; else wait "$server" || fail "SIGHUP ended serve with code $?"; fi
  run 0 status a0 a1 a2 --json
  says '"clean": true'
}

trace_of() { run 0 trace generate --profile zipf:0.99 --range 4MiB --requests 2000 --seed "${2:-1}" "$1"; }

check_B8() {
  trace_of t.csv
  run 0 simulate --trace t.csv --ssd was-ssd --fill --compare raid,eplog,elastic,was --timed
  says "absorbed" "on equal terms: all acknowledge what the devices have"
  says_not "NOT ON EQUAL TERMS"
  run 0 simulate --trace t.csv --ssd was-ssd --fill --compare raid,eplog,was --own-terms
  says "NOT ON EQUAL TERMS"
}

check_B9() {
  run 0 --version
  says "commit"
  trace_of t.csv
  run 0 simulate --trace t.csv --ssd was-ssd --compare raid,eplog --out out --json
  says '"provenance"' '"commit"' '"host"' '"command"'
  head -1 out/results.csv | grep -q build || fail "results.csv does not say which build"
  run 0 bench --device null --requests 10 --workload randread --volume-size 1MiB
  says "commit"
}

check_B10() {
  local code='(^|[^A-Za-z0-9-])[A-HK-PRWX]-[0-9]{2}([^0-9A-Za-z]|$)' command
  "$elastripe" --help >said
  for command in $(sed -n 's/^  \([a-z]*\) .*/\1/p' said); do
    "$elastripe" "$command" --help >said 2>&1 || true
    says_not "$code"
  done
}
