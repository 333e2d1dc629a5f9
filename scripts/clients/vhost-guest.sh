# Runs in the virtual machine of vhost.sh, as its only program: a disk of `serve --vhost-user-blk`. Shell of
# busybox.

set -u
. /guest.sh
mount -t tmpfs tmpfs /tmp
stty -echo
while read -r module; do insmod "/modules/$module" 2>/dev/null || true; done </modules/order

# ask WISH: has the host do it (grant in vhost.sh); sets `answer`.
ask() {
  echo "host: $1"
  read -r -t 300 answer || fail "no answer to $1"
}
size() { echo $(($(cat /sys/block/vda/size) * 512)); }
size_is() { [ "$(size)" = "$1" ]; }
# calls RING: how often the disk has called of it.
calls() {
  awk -v ring="virtio[0-9]*-req[.]$1\$" '$NF ~ ring { for (i = 2; i < NF; i++) sum += $i } END { print sum + 0 }' \
    /proc/interrupts
}
# same FILE MIB: the disk begins with these bytes, past its cache.
same() {
  local found
  found=$(dd if=/dev/vda bs=1M count="$2" iflag=direct 2>/dev/null | cmp -n $(($2 << 20)) "$1" - 2>&1 | head -n 1)
  [ -z "$found" ] || fail "other bytes: $found"
}
# zeros AT LENGTH: in what is expected.
zeros() { dd if=/dev/zero of=/tmp/a bs=512 seek=$(($1 / 512)) count=$(($2 / 512)) conv=notrunc 2>/dev/null; }

soon 30 test -b /dev/vda || fail "no /dev/vda"
step "guest of Linux $(uname -r), $(nproc) processors"
expect size "$(size)" "$(given bytes 0)"
expect "serial number" "$(cat /sys/block/vda/serial)" "$(given uuid none | tr -d - | cut -c1-20)"
expect "logical block" "$(limit vda logical_block_size)" 512
expect "physical block" "$(limit vda physical_block_size)" 4096
expect "best size" "$(limit vda optimal_io_size)" 4096
expect cache "$(limit vda write_cache)" "write back"
expect "longest discard" "$(limit vda discard_max_hw_bytes)" $((2 << 30))
expect "longest write of zeros" "$(limit vda write_zeroes_max_bytes)" $((2 << 30))
expect "discard granularity" "$(limit vda discard_granularity)" 4096
expect queues "$(ls /sys/block/vda/mq | wc -l)" 2

step "what is written is read, by both queues"
dd if=/dev/urandom of=/tmp/a bs=1M count=24 2>/dev/null
for processor in 0 1; do
  before=$(calls $processor)
  taskset $((1 << processor)) dd if=/tmp/a of=/dev/vda bs=1M seek=$((processor * 12)) skip=$((processor * 12)) \
    count=12 oflag=direct 2>/dev/null || fail "dd by processor $processor"
  [ "$(calls $processor)" -gt "$before" ] || fail "ring $processor has not been used"
done
same /tmp/a 24
dd if=/tmp/a of=/dev/vda bs=512 count=37 skip=11 seek=9003 oflag=direct 2>/dev/null || fail "dd of sectors"
dd if=/tmp/a of=/tmp/b bs=512 count=37 skip=11 2>/dev/null
dd if=/tmp/b of=/tmp/a bs=512 seek=9003 conv=notrunc 2>/dev/null
same /tmp/a 24
verify /dev/vda --offset=32m --rw=randwrite --bsrange=512-256k --size=24m --numjobs=1

step "discarded ranges are zero, those beside them as they were"
/sbin/blkdiscard -o $((4 << 20)) -l $((4 << 20)) /dev/vda || fail "discard"
/sbin/blkdiscard -z -o $((12 << 20)) -l $(((1 << 20) + 512)) /dev/vda || fail "write zeroes"
zeros $((4 << 20)) $((4 << 20))
zeros $((12 << 20)) $(((1 << 20) + 512))
same /tmp/a 24

step "ext4, a member fails under load"
mkfs.ext4 -q -F /dev/vda || fail mkfs
dmesg -c >/dev/null
mount -t ext4 /dev/vda /mnt || fail mount
begin_load
moves "at first"
ask fail
moves "when a member has failed"
end_load
check_load
step "$(lines) files, read right without a member; stop is refused; the member is renewed under load"
ask stop
begin_load
moves "again"
ask renew
moves "when the member was renewed"

step "it grows under load"
ask grow
[ "$answer" -gt $(($(given bytes 0) * 3 / 2)) ] || fail "$answer bytes after growing"
soon 30 size_is "$answer" || fail "$(size) bytes, not $answer: the guest does not hear of it"
expect getsize64 "$(blockdev --getsize64 /dev/vda)" "$answer"
moves "when it has grown"
resize2fs /dev/vda >/tmp/resize.log 2>&1 || fail resize2fs
[ $(($(df -k /mnt | awk 'END { print $2 }') * 1024)) -gt $((answer * 4 / 5)) ] || fail "the file system has not grown"
moves "on the larger file system"
# More than there was room for.
dd if=/dev/urandom of=/tmp/piece2 bs=1M count=16 2>/dev/null
count=$(($(given bytes 0) / (16 << 20) + 1))
sum=$(md5sum </tmp/piece2)
for number in $(seq $count); do cp /tmp/piece2 "/mnt/large$number" || fail "large file $number"; done
end_load
check_load
for number in $(seq $count); do [ "$(md5sum <"/mnt/large$number")" = "$sum" ] || fail "large file $number differs"; done

step "trimmed, whole, and shut down"
rm /mnt/large*
sync
/sbin/fstrim -v /mnt || fail fstrim
check_load
umount /mnt || fail umount
e2fsck -fn /dev/vda >/tmp/fsck.log 2>&1 || fail "fsck: $?"
dmesg | grep -iE 'error|ext4-fs.*(warn|abort)|remount|blocked for' && fail "the kernel complains"
step "$(lines) writes of files"
sum=$(dd if=/dev/vda bs=1M iflag=direct 2>/dev/null | md5sum | cut -d' ' -f1)
echo "sum: $sum"
step done
