#!/usr/bin/env bash
# The product at work, in a minute: an array of files is made and served over NBD, a block trace runs through it, two devices
# are lost and replaced meanwhile, and every block is verified. `make run` builds the program and runs this.
#
#   TRACE=FILE   another trace     SPEED=N   times faster than it was recorded     ELASTRIPE=FILE   another binary
#
# Everything lies in a temporary directory that is removed at the end. Exit code 0 only if each step did what it says.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
[ -x "$elastripe" ] || { echo "demo: no $elastripe: run \`make build\` first" >&2; exit 1; }
elastripe=$(realpath "$elastripe")
TRACE=${TRACE:+$(realpath "$TRACE")}

if [ -t 1 ]; then bold=$'\e[1m' dim=$'\e[2m' plain=$'\e[0m'; else bold='' dim='' plain=''; fi
step=0
heading() { step=$((step + 1)); printf '\n%s%d. %s%s\n' "$bold" "$step" "$*" "$plain"; }
say() { printf '   %s\n' "$*"; }
indent() { sed 's/^/   | /'; }
die() { printf '\ndemo: FAILED: %s\n' "$*" >&2; exit 1; }

work=$(mktemp -d --suffix=.elastripe-demo)
server='' replay=''
finish() {
  local code=$?
  trap - EXIT INT TERM
  for process in $replay $server; do kill "$process" 2>/dev/null || continue; wait "$process" 2>/dev/null || true; done
  rm -rf "$work"
  exit "$code"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
cd "$work"
export ELASTRIPE_RUN_DIR=$work/run   # where the server's control socket is

# run COMMAND...: shows a command of the program, runs it, shows what it says.
show() { printf '   %s$ elastripe %s%s\n' "$dim" "$*" "$plain"; }
run() {
  show "$@"
  local code=0
  "$elastripe" "$@" >run.log 2>&1 || code=$?
  indent <run.log
  [ $code -eq 0 ] || die "elastripe $1: exit code $code"
}

# wait_for SECONDS WHAT COMMAND...: until the command succeeds.
wait_for() {
  local until=$((SECONDS + $1)) what=$2
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || die "$what: still not after the time given to it"
    sleep 0.1
  done
}
alive() { kill -0 "$1" 2>/dev/null || die "$2 ended too early: $(tail -n 3 "$3")"; }

# status_must_be CODE: shows the status, whose exit code says how the array is: 0 healthy, 1 degraded, 2 failed.
status_must_be() {
  local code=0
  show status "${members[@]}"
  "$elastripe" status "${members[@]}" >status.txt 2>&1 || code=$?
  indent <status.txt
  [ $code -eq "$1" ] || die "status: exit code $code, expected $1"
}
status_is() { local code=0; "$elastripe" status "${members[@]}" || code=$?; [ $code -eq "$1" ]; }

rebuild_under_way() {
  "$elastripe" status "${members[@]}" >status.txt && return   # healthy: it has ended already
  grep -qE 'work: .* [0-9.]+ % done' status.txt && ! grep -qE 'work: .* 0\.0 % done' status.txt
}

fill_has_ended() { grep -q '^replay' replay.log || ! kill -0 "$replay"; }

serve() {
  show serve "${members[@]}" --nbd unix:socket "$@" "&"
  : >server.log
  "$elastripe" serve "${members[@]}" --nbd unix:socket "$@" >>server.log 2>&1 &
  server=$!
  wait_for 30 "serve" grep -q '^serving at' server.log
  indent <server.log
}
stop() {
  local code=0
  kill -TERM "$server"
  wait "$server" || code=$?
  server=''
  [ $code -eq 0 ] || die "the server stopped with exit code $code: $(tail -n 3 server.log)"
  tail -n 1 server.log | indent
}

# Every byte of the volume, in 64 digits.
fingerprint() { nbdcopy "$uri" - | sha256sum | cut -d' ' -f1; }

# ---- the trace

if [ -z "$TRACE" ] && [ -f "$repo/../shared/traces/msr_rsrch_1.csv.zst" ]; then
  TRACE=$(realpath "$repo/../shared/traces/msr_rsrch_1.csv.zst") SPEED=${SPEED:-40000}
  about="a week of a server's disk, $SPEED times faster than it was recorded"
elif [ -z "$TRACE" ]; then
  TRACE=$repo/fixtures/traces/synthetic.csv.zst SPEED=${SPEED:-1}
  about="a synthetic trace, for want of a real one"
else
  SPEED=${SPEED:-1} about="your trace, $SPEED times faster than it was recorded"
fi
trace=$(basename "$TRACE")
ln -s "$TRACE" "$trace"
command -v nbdcopy >/dev/null || die "nbdcopy is missing: run \`make setup\`"

# ---- the show

heading "Ten files become an array: 6 data + 2 parity SSDs, and 2 log devices"
say "Any two of the ten may be lost. Parity of updates goes to the log devices at first, which spares the SSDs."
members=(ssd{0..7} log{0..1})
run create --name demo --scheme eplog --parity 2 --data ssd{0..7} --log log{0..1} --file-size 128MiB

heading "It is served over NBD, as a disk that any NBD client can use"
serve --rebuild-rate 100MiB/s
uri="nbd+unix:///?socket=$work/socket"
say "Look at: state HEALTHY."
status_must_be 0

heading "A trace is replayed through it: $about"
say "First the whole footprint is written, so that every write of the trace is an update. Every sector says which write"
say "it is of; every read is checked, and everything once more at the end. This goes on in the background."
replay_command=(replay --nbd unix:socket --overwrite --trace "$trace" --compact --fill --timed --speed "$SPEED" --verify)
show "${replay_command[@]}" "&"
"$elastripe" "${replay_command[@]}" >replay.log 2>&1 &
replay=$!
wait_for 120 "the fill" fill_has_ended
alive "$replay" "the replay" replay.log
sleep 2

heading "Meanwhile an SSD and a log device are lost"
alive "$replay" "the replay" replay.log
run fail ssd0 --device data2
run fail ssd0 --device log0 --yes
say "Look at: state DEGRADED, and what it means; the replay goes on."
status_must_be 1

heading "Fresh files take their places; the rebuild runs while the trace does"
alive "$replay" "the replay" replay.log
run replace ssd0 --device data2 --with new-ssd2 --file-size 128MiB
run replace ssd0 --device log0 --with new-log0 --file-size 128MiB
members[2]=new-ssd2 members[8]=new-log0
wait_for 5 "the beginning of the rebuild" rebuild_under_way
grep -E '^ *(state|meaning|work):' status.txt | indent
alive "$replay" "the replay" replay.log
wait_for 120 "the rebuild" status_is 0
say "... and a few seconds later: rebuilt."

heading "The replay ends: what it read, it had written"
code=0
wait "$replay" || code=$?
replay=''
# Without latencies: at this speed whole minutes of the trace arrive at once, and wait for each other.
grep -E '^(fill|replay|verify) +[0-9]' replay.log | indent || true
[ $code -eq 0 ] || die "the replay found wrong content or could not go on: exit code $code: $(tail -n 3 replay.log)"
grep -qE '^verify .*, 0 wrong$' replay.log || die "the replay verified nothing"

heading "The array checks itself, and is whole again"
before=$(fingerprint)
run scrub ssd0 --wait
status_must_be 0

heading "It is stopped and started again: every byte is still there"
stop
serve
after=$(fingerprint)
say "SHA-256 of the volume before: $before"
say "                       after: $after"
[ "$before" = "$after" ] || die "the volume changed"
status_is 0 >status.txt || die "the array is not healthy after the restart"
stop

printf '\n%sAll of it held.%s %d s. Everything was in a temporary directory and is gone now.\n' "$bold" "$plain" "$SECONDS"
