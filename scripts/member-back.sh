#!/usr/bin/env bash
# What `elastripe online` reads and writes to make a member whole that was away while 1 % of the volume was overwritten, in percent of
# the volume: the sums of what the array transferred on all members, before and after. Each row takes another member, one after the
# other on one array whose volume was written full. The last row begins before the array has committed parity, which is due whether
# or not a member comes back; exit code 1 if another one takes more than LIMIT percent.
#
#   FILE_SIZE=3200MiB (each of 6+2 members and two log devices, sparse)  SCHEME=eplog  CHUNK=4KiB  LIMIT=3.0  FILES=/tmp (where)
#   ELASTRIPE=target/release/elastripe
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
limit=${LIMIT:-3.0}
for tool in "$elastripe" fio nbdinfo python3; do
  command -v "$tool" >/dev/null || { echo "member-back.sh: no $tool (make setup, make build)" >&2; exit 1; }
done

work=$(mktemp -d -p "${FILES:-/tmp}" member-back.XXXXXX)
. "$repo/scripts/clients/lib.sh"
export ELASTRIPE_RUN_DIR=$work/run
trap give_back_all EXIT
trap 'exit 130' INT TERM
give_back_all() { trap - EXIT; give_back; rm -rf "$work"; }

data=() logs=()
for i in 0 1 2 3 4 5 6 7; do data+=("$work/ssd$i"); done
"$elastripe" create --scheme "${SCHEME:-eplog}" --name away --parity 2 --chunk-size "${CHUNK:-4KiB}" --file-size "${FILE_SIZE:-3200MiB}" \
  --data "${data[@]}" --log "$work/log0" "$work/log1" >/dev/null
"$elastripe" serve "${data[@]}" "$work/log0" "$work/log1" --nbd "unix:$work/socket" </dev/null >>"$work/serve.log" 2>&1 &
server=$!
note "process $server"
disown
uri="nbd+unix:///?socket=$work/socket"
soon 30 timeout 5 nbdinfo --size "$uri" || fail "the server does not answer: $(tail -n 3 "$work/serve.log")"
size=$(nbdinfo --size "$uri")

# write_fio MODE BLOCK BYTES: written and flushed.
write_fio() {
  fio --thread --name=job --ioengine=nbd --uri="$uri" --size="$((size >> 20))m" --rw="$1" --bs="$2" --io_size="$3" --iodepth=32 \
    --end_fsync=1 --randseed=1 --norandommap --minimal >/dev/null 2>"$work/fio.err" || { cat "$work/fio.err"; fail "fio"; }
}
# figures: bytes read and written on all members since the array was assembled, and stripes that await parity commit.
figures() {
  timeout 20 "$elastripe" status away --json >"$work/status.json" || true
  python3 -c 'import json, sys
value = json.load(open(sys.argv[1]))
value = value[0] if isinstance(value, list) else value
sums = [sum(d["traffic"][way] for d in value["devices"]) for way in ("read_bytes", "written_bytes")]
print(*sums, value["commit"]["dirty_stripes"])' "$work/status.json"
}
is_committed() { [[ $(figures) == *" 0" ]]; }

# row MEMBER WORDS MODE BLOCK [COMMAND...]: one row; `commit` and `checkpoint` are given before the return, `busy`: at once.
row() {
  local member=$1 words=$2 mode=$3 block=$4 what; shift 4
  "$elastripe" fail away --device "$member" --yes >/dev/null
  write_fio "$mode" "$block" $((size / 100))
  # By itself an idle array commits parity.
  [ "${1:-}" = busy ] || soon 120 is_committed || fail "no parity commit within two minutes"
  for what in "$@"; do
    case $what in
      commit) "$elastripe" commit away >/dev/null ;;
      checkpoint) "$elastripe" checkpoint away --full >/dev/null ;;
      busy) ;;
    esac
  done
  local before after
  before=$(figures)
  "$elastripe" online away --device "$member" --wait >/dev/null 2>&1
  after=$(figures)
  awk -v words="$words" -v size="$size" '{ read = $4 - $1; written = $5 - $2; share = 100 * (read + written) / size
    printf "%-44s read %5d MiB  written %5d MiB  %5.2f %%\n", words, read / 1048576, written / 1048576, share > "/dev/stderr"
    print share }' <<<"$before $after" >>"$work/shares"
}

write_fio write 1m "$size"
"$elastripe" commit away >/dev/null
echo "a volume of $((size >> 20)) MiB, written full; $("$elastripe" --version | tr '\n' ' ')"
row data0 "1 % at once" write 1m
row data1 "1 % in blocks of 64 KiB at random" randwrite 64k
row data2 "1 % in blocks of 4 KiB at random" randwrite 4k
row data3 "the same, commit and checkpoint before" randwrite 4k commit checkpoint
worst=$(sort -g "$work/shares" | tail -n 1)
row data4 "the same, parity commit is due" randwrite 4k busy
"$elastripe" scrub away --wait >/dev/null 2>&1 || fail "the scrub afterwards found something"
awk -v worst="$worst" -v limit="$limit" 'BEGIN { exit !(worst <= limit) }' || fail "$worst % is more than $limit %"
