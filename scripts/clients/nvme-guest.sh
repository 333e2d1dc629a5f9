# Runs in the virtual machine of nvme.sh, as its only program: members that are NVMe drives. Shell of busybox.
#
# The array is served by io_uring on /dev/nvme*n1; the last drive warns that it runs out of spare blocks.

set -u
. /guest.sh
fdp=$(given fdp no)
mkdir -p /tmp /run /m
while read -r module; do insmod "/modules/$module"; done </modules/order
ip link set lo up 2>/dev/null
export ELASTRIPE_RUN_DIR=/run/e

drives() { [ -b /dev/nvme0n1 ] && [ -b /dev/nvme1n1 ] && [ -b /dev/nvme2n1 ] && [ -b /dev/nvme3n1 ]; }
status() { elastripe status tank --json >/tmp/status.log 2>&1; }
told() { status && [ "$(grep -c '"used_percent": 0' /tmp/status.log)" = 4 ]; }
# left DRIVE: of each of its placement handles what room its reclaim unit has.
left() { nvme fdp status "$1" 2>/dev/null | awk -F': *' '/RUAMW|Reclaim Unit Available/ { print $NF }'; }

soon 60 drives || fail "no drives"
step "kernel $(uname -r), FDP $fdp; write streams: $(cat /sys/block/nvme0n1/queue/max_write_streams 2>/dev/null || echo 'this kernel has none')"
if [ "$fdp" = yes ] && command -v nvme >/dev/null; then
  for drive in 0 1 2 3; do
    # Off until somebody turns it on, which a drive with a namespace refuses; QEMU's drives begin with it on.
    nvme fdp status /dev/nvme${drive}n1 >/tmp/fdp$drive.log 2>&1 || echo "nvme fdp status: $(cat /tmp/fdp$drive.log)"
  done
fi
offered=$(cat /sys/block/nvme0n1/queue/max_write_streams 2>/dev/null || echo 0)

# By number, as busybox's shell sorts names: the drive that warns must be known by its serial.
warns=$(grep -l drive3 /sys/class/nvme/*/serial | sed 's,.*/\(nvme[0-9]*\)/.*,\1,')
others=$(for drive in nvme0 nvme1 nvme2 nvme3; do [ $drive = "$warns" ] || echo "/dev/${drive}n1"; done)
elastripe create --scheme eplog --parity 1 --name tank --data $others --log "/dev/${warns}n1" >/tmp/create.log 2>&1 || fail create
: >/tmp/events.log
elastripe serve $others "/dev/${warns}n1" --nbd unix:/tmp/volume --metrics 127.0.0.1:9880 \
  --on-event 'echo "$ELASTRIPE_EVENT $ELASTRIPE_DEVICE $ELASTRIPE_MESSAGE" >>/tmp/events.log' >/tmp/serve.log 2>&1 &
server=$!
soon 120 says serve 'serving at' || fail "not served"

step "what the drives tell of their wear"
soon 60 told || fail "four drives tell of their wear"
elastripe status tank --verbose | tee /tmp/verbose.log
soon 30 says events "drive-warning log0 log0 (/dev/${warns}n1): its drive warns of spare-low" || fail "no event of the warning"
grep -q 'warnings.*\[\]' /tmp/status.log || fail "the others warn of nothing"
grep -q '"spare-low"' /tmp/status.log || fail "no warning in the status"
wget -q -O /tmp/metrics.log http://127.0.0.1:9880/metrics || fail metrics
grep -q '^elastripe_device_warning{device="log0",kind="spare-low"} 1.0$' /tmp/metrics.log || fail "no metric of the warning"
grep -q '^elastripe_device_temperature_celsius{device="data0"} [1-9]' /tmp/metrics.log || fail "no temperature"

step "writes: io_uring on a drive, in their streams"
before=$(left /dev/nvme0n1 | tr '\n' ' ')
if command -v qemu-io >/dev/null; then
  qemu-io -f raw -c 'write -P 1 0 24M' -c flush -c 'write -P 2 4k 64k' -c 'write -P 3 1M 4k' -c flush \
    'nbd+unix:///?socket=/tmp/volume' >/tmp/client.log 2>&1 || fail "a client's writes"
  elastripe commit tank >/tmp/commit.log 2>&1 || fail commit
  qemu-io -f raw -c 'read -P 1 2M 22M' -c 'read -P 2 4k 64k' -c 'read -P 3 1M 4k' 'nbd+unix:///?socket=/tmp/volume' \
    >/tmp/client.log 2>&1 || fail "a client's reads"
  ! grep -q failed /tmp/client.log || fail "what was read is not what was written"
fi
after=$(left /dev/nvme0n1 | tr '\n' ' ')
echo "room of the reclaim units of /dev/nvme0n1, by placement handle: $before-> $after"
status || true
in_use=$(grep -c "\"write_streams\": $([ "$offered" -gt 1 ] && echo "$offered" || echo 0)" /tmp/status.log)
expect "devices with $offered write streams" "$in_use" 4
if [ "$offered" -gt 1 ] && [ -n "$before" ]; then
  # The first handle has what belongs to no stream, too; data, parity and metadata have moved in three more.
  moved=0
  set -- $after
  for room in $before; do [ "$room" = "$1" ] || moved=$((moved + 1)); shift; done
  [ $moved -ge 3 ] || fail "only $moved placement handles were written to"
  echo "$moved placement handles were written to"
fi
elastripe scrub tank --wait >/tmp/scrub.log 2>&1 || fail scrub
kill -TERM $server; wait $server || fail "the server did not stop in order"
elastripe status $others "/dev/${warns}n1" --verbose >/tmp/stopped.log 2>&1; expect "state when stopped" $? 0
grep -q spare-low /tmp/stopped.log || fail "a stopped array's drives are asked, too"
step done
exit 0
