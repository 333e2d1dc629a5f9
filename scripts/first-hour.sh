#!/usr/bin/env bash
# An operator's and a researcher's first hour with the program, again: each command that once did harm, misled or was in
# the way does what is wanted now. One line each: `ok A1 ...`, `FAILED A1 ...` or `SKIPPED A1 ...` with the reason.
#
#   scripts/first-hour.sh [NAME...]   all checks, or those named: A1 B3 C12, or A for all of a letter
#
#   ELASTRIPE=FILE   the binary (target/release/elastripe)     KEEP=1   keep the directories of checks that fail
#   JOBS=4           checks side by side
#
# A: data or redundancy at risk. B: misleads whoever watches. C: in the way.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
PATH=$PATH:/usr/sbin:/sbin
. "$repo/scripts/clients/lib.sh"
. "$repo/scripts/first-hour/lib.sh"
. "$repo/scripts/first-hour/risk.sh"
. "$repo/scripts/first-hour/mislead.sh"
. "$repo/scripts/first-hour/way.sh"

# name : what is wanted
checks=(
  "A1:a file in service is not deleted by the command that put it there"
  "A2:a rebuild on an idle server begins and ends by itself"
  "A3:lost chunks are a state of their own, listed, and rewriting them is the way out"
  "A4:output goes through devices and FIFOs, not in their place"
  "A5:a spare is used by an array that starts without a member"
  "A6:stop is refused while clients are connected"
  "A7:an offline scrub that is interrupted leaves an array that starts"
  "A10:a full disk stops writes, not members"
  "A11:a hung device is done without"
  "A12:members can be told from blank disks"
  "B1:status of a dead server is not fine"
  "B2:status of one member of many is INCOMPLETE"
  "B3:a copy does not take over the original's control socket"
  "B4:checksum errors are part of the state, and can be cleared"
  "B5:a truncated member is found by scrub, and left out at the start"
  "B6:a scrub leaves a record in log and status"
  "B7:SIGHUP and SIGUSR1 do not kill a server"
  "B8:schemes on unequal terms are said to be so"
  "B9:version, commit and command line are in every result"
  "B10:no output speaks in codes that cannot be looked up"
  "C1:create chooses chunks that fit into memory"
  "C2:bench refuses what does not fit into memory"
  "C3:work in the background can be slowed, paused, stopped and waited for"
  "C4:a rebuild passes over what was never written"
  "C5:arrays are found among devices that are no members"
  "C6:a unit, readiness, events; a warning where anybody can connect"
  "C7:sizes without iB"
  "C8:create without --scheme"
  "C9:the common form of traces is documented"
  "C10:results have each column once, with lifespan, trace and geometry"
  "C11:traces and seeds can be swept"
  "C12:two processes do not mix their rows"
  "C13:plot --over takes several columns"
  "C14:no Debug text in JSON"
  "C15:messages about traces and devices say what was found"
  "C16:names and words of status and messages"
  "C17:generated traces are read by other programs"
)

# One check, in a process of its own: `first-hour.sh --inner DIRECTORY FUNCTION`.
if [ "${1:-}" = --inner ]; then
  work=$2
  cd "$work"
  export ELASTRIPE_RUN_DIR=$work/run
  trap give_back EXIT
  trap 'exit 1' TERM INT
  "$3"
  exit 0
fi

[ -x "$elastripe" ] || { echo "first-hour.sh: no $elastripe; run make build first" >&2; exit 1; }
elastripe=$(realpath "$elastripe")
export ELASTRIPE=$elastripe

base=$(mktemp -d --suffix=.elastripe-hour)
finish() {
  trap - EXIT INT TERM
  local pids
  pids=$(jobs -p)
  # shellcheck disable=SC2086
  [ -z "$pids" ] || { kill -TERM $pids 2>/dev/null; wait; } || true
  for work in "$base"/*/; do [ ! -d "$work" ] || { work=${work%/}; give_back; }; done
  [ -n "${kept:-}" ] || rm -rf "$base"
}
trap finish EXIT
trap 'exit 130' INT TERM

wanted() {
  [ ${#names[@]} -gt 0 ] || return 0
  local one
  for one in "${names[@]}"; do [ "$1" != "$one" ] && [ "${1%%[0-9]*}" != "$one" ] || return 0; done
  return 1
}

# run_check NAME WHAT: one line, and the end of the log of what failed.
run_check() {
  local name=$1 what=$2 code=0 work=$base/$1
  mkdir -p "$work"
  timeout -k 10 400 "$0" --inner "$work" "check_$name" </dev/null >"$work/log" 2>&1 || code=$?
  give_back
  case $code in
    0) echo "ok $name $what" >"$work.line" ;;
    77) echo "SKIPPED $name $what: $(cat "$work/skipped")" >"$work.line" ;;
    *) { echo "FAILED $name $what"; [ $code -ne 124 ] || echo "    not done after 100 s"; tail -n 12 "$work/log" | sed 's/^/    /'; } >"$work.line" ;;
  esac
}

names=("$@")
chosen=()
for entry in "${checks[@]}"; do
  name=${entry%%:*}
  wanted "$name" || continue
  chosen+=("$name")
  while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-4}" ]; do wait -n || true; done
  run_check "$name" "${entry#*:}" &
done
wait
passed=0 failed=0 skipped=0
for name in "${chosen[@]}"; do
  cat "$base/$name.line"
  case $(head -c 2 "$base/$name.line") in
    ok) passed=$((passed + 1)); rm -rf "${base:?}/$name" ;;
    SK) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)); [ -z "${KEEP:-}" ] || { echo "    kept: $base/$name"; kept=yes; } ;;
  esac
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ] && [ $((passed + skipped)) -gt 0 ]
