# Sourced by what runs in a virtual machine as its only program (nvme-guest.sh,
# ublk-guest.sh, vhost-guest.sh). Shell of busybox.

mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev

# given NAME DEFAULT: what the kernel's command line says of a name.
given() {
  local word
  for word in $(cat /proc/cmdline); do case $word in "$1"=*) echo "${word#*=}"; return ;; esac; done
  echo "$2"
}
fail() {
  echo "FAIL: $*"
  for log in /tmp/*.log; do echo "-- $log"; tail -n 40 "$log"; done
  echo "-- dmesg"; dmesg | tail -n 30
  exit 1
}
step() { echo "== $(cut -d. -f1 /proc/uptime) s: $*"; }
# soon SECONDS COMMAND...
soon() {
  local left=$(($1 * 10)); shift
  while ! "$@" >/dev/null 2>&1; do
    left=$((left - 1)); [ $left -gt 0 ] || return 1
    sleep 0.1
  done
}
# says LOG TEXT
says() { grep -q "$2" "/tmp/$1.log"; }
# expect WHAT FOUND WANTED
expect() { [ "$2" = "$3" ] || fail "$1: $2, expected $3"; }
limit() { cat "/sys/block/$1/queue/$2"; }
# verify DISK OPTION...: writes and reads by fio.
verify() {
  local disk=$1; shift
  timeout 300 fio --name=job --filename="$disk" --direct=1 --ioengine=psync --verify=crc32c --verify_fatal=1 --thread \
    --allow_file_create=0 --aux-path=/tmp "$@" >/tmp/fio.log 2>&1 || fail "fio $*"
}

# A load on a file system at /mnt: files of random bytes, noted with their sums when fsync has returned.
begin_load() {
  rm -f /tmp/enough
  : >>/tmp/load.log
  load &
  loader=$!
}
load() {
  local round=0 sum
  while [ ! -e /tmp/enough ]; do
    round=$((round + 1))
    dd if=/dev/urandom of=/tmp/piece bs=16k count=$((round % 7 + 1)) 2>/dev/null
    sum=$(md5sum </tmp/piece | cut -d' ' -f1)
    dd if=/tmp/piece of="/mnt/$((round % 200))" bs=64k conv=fsync 2>/dev/null || { echo "FAILED in round $round" >>/tmp/load.log; return 1; }
    echo "$((round % 200)) $sum" >>/tmp/load.log
  done
}
end_load() {
  touch /tmp/enough
  wait "$loader" || fail "the load failed"
  ! grep FAILED /tmp/load.log || fail "the load failed"
}
lines() { wc -l </tmp/load.log; }
more_than() { [ "$(lines)" -gt "$1" ]; }
# moves WHEN: the load goes on.
moves() { local before; before=$(lines); soon 60 more_than $((before + 10)) || fail "the load does not move $1"; }
# check_load: every file is what it was written as last, also past the cache.
check_load() {
  sync
  echo 3 >/proc/sys/vm/drop_caches
  awk '{ sum[$1] = $2 } END { for (name in sum) print sum[name] "  /mnt/" name }' /tmp/load.log >/tmp/sums
  md5sum -c /tmp/sums >/tmp/md5.log 2>&1 || fail "files differ: $(grep -v OK /tmp/md5.log | head)"
  step "$(wc -l </tmp/sums) files of $(lines) writes are right"
}
