# Sourced by what runs in a virtual machine as its only program (nvme-guest.sh, ublk-guest.sh). Shell of busybox.

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
