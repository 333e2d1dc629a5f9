# Runs in the virtual machine of ublk.sh, as its only program: `serve --ublk` with a real driver. Shell of busybox.
#
# Members are files in memory: they outlive a server that is killed, and cost no time.

set -u
. /guest.sh
crashes=$(given crashes 3)

gone() { ! kill -0 "$1" 2>/dev/null; }
absent() { [ ! -e "$1" ]; }

# make NAME SIZE: a 4+2 array with a log device for each parity.
make() {
  mkdir -p "/m/$1"
  elastripe create --scheme eplog --parity 2 --file-size "$2" --name "$1" \
    --data "/m/$1/d0" "/m/$1/d1" "/m/$1/d2" "/m/$1/d3" "/m/$1/d4" "/m/$1/d5" --log "/m/$1/l0" "/m/$1/l1" >/tmp/create.log 2>&1 ||
    fail "create $1"
}
# serve NAME OPTION...: in the background; sets `server`. Waits until it says that it serves.
serve() {
  launch "$@"
  soon 60 says "$1" "^serving at /dev/ublkb" || fail "$1 is not served after 60 s"
}
launch() {
  local name=$1; shift
  : >"/tmp/$name.log"
  elastripe serve /m/"$name"/* "$@" >>"/tmp/$name.log" 2>&1 &
  server=$!
}
# refuse NAME TEXT OPTION...: serving must fail with these words.
refuse() {
  local name=$1 text=$2; shift 2
  timeout 60 elastripe serve /m/"$name"/* "$@" >/tmp/refused.log 2>&1 && fail "serve $* was not refused"
  grep -q "$text" /tmp/refused.log || fail "serve $*: not the words \"$text\""
}
kill_server() { kill -KILL "$server"; wait "$server" 2>/dev/null; }
# end_server: in order.
end_server() {
  kill -TERM "$server"
  soon 90 gone "$server" || fail "the server did not end within 90 s"
  wait "$server" || fail "the server ended with exit code $?"
}

mount -t tmpfs -o size=1500m tmpfs /m; mount -t tmpfs tmpfs /tmp; mount -t tmpfs tmpfs /run; mkdir -p /tmp/mnt
export ELASTRIPE_RUN_DIR=/run/elastripe
step "guest of Linux $(uname -r)"
make one 64MiB
refuse one "ublk-control is not there.*ublk_drv" --ublk
while read -r module; do insmod "/modules/$module" 2>/dev/null || true; done </modules/order
[ -c /dev/ublk-control ] || fail "no ublk_drv"
refuse one "expected the number of a disk" --ublk /m/one/d0

step "limits"
serve one --ublk
[ -b /dev/ublkb0 ] || fail "no /dev/ublkb0"
expect cache "$(limit ublkb0 write_cache)" "write through"
expect "physical block" "$(limit ublkb0 physical_block_size)" 4096
expect "logical block" "$(limit ublkb0 logical_block_size)" 512
expect "longest transfer" "$(limit ublkb0 max_hw_sectors_kb)" 1024
[ "$(limit ublkb0 discard_max_hw_bytes)" -gt 0 ] || fail "no discard"
[ "$(limit ublkb0 write_zeroes_max_bytes)" -gt 0 ] || fail "no write zeroes"
size=$(($(cat /sys/block/ublkb0/size) * 512))
[ "$size" -gt $((150 << 20)) ] || fail "4+2 x 64 MiB give only $size bytes"

step "what is written is read, discarded ranges are zero"
dd if=/dev/urandom of=/tmp/a bs=1M count=24 2>/dev/null
dd if=/tmp/a of=/dev/ublkb0 bs=1M oflag=direct 2>/dev/null || fail "dd"
dd if=/tmp/a of=/dev/ublkb0 bs=512 count=37 skip=11 seek=100003 oflag=direct 2>/dev/null || fail "dd of sectors"
sync
cmp -n $((24 << 20)) /tmp/a /dev/ublkb0 || fail "other bytes"
dd if=/dev/ublkb0 bs=512 skip=100003 count=37 iflag=direct 2>/dev/null >/tmp/b
dd if=/tmp/a bs=512 skip=11 count=37 2>/dev/null | cmp - /tmp/b || fail "other sectors"
/sbin/blkdiscard -o $((4 << 20)) -l $((4 << 20)) /dev/ublkb0 || fail "discard"
/sbin/blkdiscard -z -o $((12 << 20)) -l $((1 << 20)) /dev/ublkb0 || fail "write zeroes"
echo 3 >/proc/sys/vm/drop_caches
dd if=/tmp/a of=/tmp/b bs=1M 2>/dev/null
dd if=/dev/zero of=/tmp/b bs=1M seek=4 count=4 conv=notrunc 2>/dev/null
dd if=/dev/zero of=/tmp/b bs=1M seek=12 count=1 conv=notrunc 2>/dev/null
cmp -n $((24 << 20)) /tmp/b /dev/ublkb0 || fail "other bytes after discard and zeros"
verify /dev/ublkb0 --rw=randwrite --bsrange=512-256k --size=24m
# The same after a restart: an orderly stop removes the disk.
end_server
says one "/dev/ublkb0 is removed" || fail "not removed"
soon 10 absent /dev/ublkb0 || fail "/dev/ublkb0 is still there"
soon 10 absent /dev/ublkc0 || fail "/dev/ublkc0 is still there"

step "numbers"
make two 32MiB
serve one --ublk 7
[ -b /dev/ublkb7 ] || fail "no /dev/ublkb7"
first=$server
refuse two "/dev/ublkb7 is there already, served by process $first" --ublk 7
refuse one "in use" --ublk 3
kill_server
# What one left is not the other's, nor elsewhere.
refuse two "/dev/ublkb7 is there already, left by process $first" --ublk 7
refuse one "the array is /dev/ublkb7 already" --ublk 3
refuse one "would get errors with --read-only" --ublk --read-only
serve two --ublk
[ -b /dev/ublkb0 ] || fail "two has taken what is not its own"
end_server
serve one --ublk
says one "serving at /dev/ublkb7" || fail "one has not found its disk"
end_server
soon 10 absent /dev/ublkb7 || fail "/dev/ublkb7 is still there"

step "read-only, and with a volatile cache"
serve two --ublk --read-only
expect read-only "$(cat /sys/block/ublkb0/ro)" 1
dd if=/dev/ublkb0 of=/dev/null bs=1M count=4 2>/dev/null || fail "read"
dd if=/tmp/a of=/dev/ublkb0 bs=4k count=1 oflag=direct 2>/dev/null && fail "a write to what is read-only"
end_server
serve two --ublk --ublk-cache volatile
expect cache "$(limit ublkb0 write_cache)" "write back"
verify /dev/ublkb0 --rw=randwrite --bs=8k --size=8m
dd if=/tmp/a of=/dev/ublkb0 bs=4k count=64 conv=fsync 2>/dev/null || fail "fsync"
elastripe status /m/two/* >/tmp/status.log 2>&1 || fail "status"
kill_server
soon 30 absent /dev/ublkb0 || fail "the disk has outlived its server"
serve two --ublk
cmp -n $((256 << 10)) /tmp/a /dev/ublkb0 || fail "what was flushed is not there"
end_server

step "two queues"
serve two --ublk --socket-threads 2
expect queues "$(ls /sys/block/ublkb0/mq | wc -l)" 2
verify /dev/ublkb0 --rw=randwrite --bs=4k --size=8m
kill_server
serve two --ublk
expect queues "$(ls /sys/block/ublkb0/mq | wc -l)" 2
verify /dev/ublkb0 --rw=randwrite --bs=4k --size=4m
end_server

step "what is written while the server is killed"
serve two --ublk
timeout 400 fio --name=job --filename=/dev/ublkb0 --direct=1 --ioengine=libaio --iodepth=16 --rw=randwrite --bs=4k --size=16m \
  --rate_iops=,$((600 / crashes)) \
  --verify=crc32c --verify_fatal=1 --thread --allow_file_create=0 --aux-path=/tmp >/tmp/fio.log 2>&1 &
writer=$!
for round in $(seq "$crashes"); do
  sleep 2
  kill -0 "$writer" 2>/dev/null || fail "fio was done before the server was killed"
  kill_server
  serve two --ublk
done
wait "$writer" || fail "fio while the server was killed"
end_server

step "a disk that is left, and given up"
serve two --ublk
kill_server
elastripe stop /m/two/* >/tmp/stop.log 2>&1 && fail "stopped what is not served"
grep -q "/dev/ublkb0 waits for the next server" /tmp/stop.log || fail "stop does not tell of the disk"
elastripe stop --force /m/two/* >/tmp/stop.log 2>&1 || fail "stop --force"
soon 10 absent /dev/ublkb0 || fail "/dev/ublkb0 is still there"
serve two --ublk
end_server

step "a mounted ext4 survives $crashes kills"
serve one --ublk
mkfs.ext4 -q -F /dev/ublkb0 || fail mkfs
dmesg -c >/dev/null
mount -t ext4 /dev/ublkb0 /mnt || fail mount
begin_load
for round in $(seq "$crashes"); do
  moves "before a kill"
  kill_server
  sleep 1
  serve one --ublk
  step "killed and served again at $(lines) files"
done
moves "after a kill"

step "an orderly restart beneath it, and a stop that is refused"
elastripe stop /m/one/* >/tmp/stop.log 2>&1 && fail "stopped beneath a mounted file system"
grep -q "mounted at /mnt" /tmp/stop.log || fail "stop does not say why not"
end_server
says one "in use and waits for the next server" || fail "not left behind"
serve one --ublk
moves "after a restart"
end_load
dmesg | grep -iE 'error|ext4-fs.*(warn|abort)|remount|blocked for' && fail "the kernel complains"
umount /mnt || fail umount
elastripe stop /m/one/* >/tmp/stop.log 2>&1 || fail "stop: $(cat /tmp/stop.log)"
soon 30 gone "$server"
soon 10 absent /dev/ublkb0 || fail "/dev/ublkb0 is still there"

step "the file system is whole, and has all that was synced"
serve one --ublk --read-only
e2fsck -fn /dev/ublkb0 >/tmp/fsck.log 2>&1 || fail "fsck: $?"
mount -t ext4 -o ro,noload /dev/ublkb0 /mnt || fail "mount again"
check_load
umount /mnt
end_server
elastripe scrub /m/one/* >/tmp/scrub.log 2>&1 || fail scrub
step done
