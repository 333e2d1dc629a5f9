# Members that are NVMe drives, in a virtual machine: what they tell of their wear, and write streams (FDP). Sourced by clients.sh. What
# happens in there is in nvme-guest.sh.
#
# QEMU 8.0 and later can emulate drives with flexible data placement; with an older one ($QEMU, qemu-system-x86_64) the drives are plain.
# Linux has write streams since 6.16: $NVME_GUEST is a directory with such a kernel unpacked in tree/ (dpkg -x), else it is that of the
# test ublk, where only the absence of streams is seen. Everything is emulated, so nothing in here says how fast anything is.

# kernel_of DIRECTORY: the kernel in there, wherever its packages put it.
kernel_of() { find "$1/tree" -name 'vmlinuz*' | head -n 1; }

# test_nvme: see nvme-guest.sh.
test_nvme() {
  local tool guest=${NVME_GUEST:-} root=$work/root qemu=${QEMU:-qemu-system-x86_64} drives=() data=() fdp=no drive with handles
  for tool in "$qemu" xz; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
  if [ -z "$guest" ]; then
    guest=${UBLK_CACHE:-${CARGO_TARGET_DIR:-$repo/target}/ublk-guest}
    fetch_guest "$guest"
  fi
  for drive in ${QEMU_DATA:-}; do data+=(-L "$drive"); done
  "$qemu" "${data[@]}" -device nvme-subsys,help | grep -q '^ *fdp=' && fdp=yes
  mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,run,m,lib,etc}
  local busybox=${BUSYBOX:-$guest/tree/bin/busybox}
  with_libraries "$root" "$elastripe"
  [ -e "$root/sbin/elastripe" ] || mv "$root/sbin/$(basename "$elastripe")" "$root/sbin/elastripe"
  for tool in nvme qemu-io; do ! command -v $tool >/dev/null || with_libraries "$root" "$(command -v $tool)"; done
  with_modules "$root" "$guest/tree" nvme loop
  make_initrd "$root" "$busybox" nvme-guest.sh
  # Of the last drive QEMU says that it has hardly any spare blocks left.
  for drive in 0 1 2 3; do
    truncate -s 128M "$work/drive$drive"
    with= handles=
    if [ $fdp = yes ]; then
      drives+=(-device "nvme-subsys,id=s$drive,fdp=on,fdp.nruh=8,fdp.nrg=1,fdp.runs=16M")
      with=,subsys=s$drive handles=,fdp.ruhs=0-5
    fi
    [ $drive != 3 ] || with+=,smart_critical_warning=1
    drives+=(-drive "if=none,id=d$drive,file=$work/drive$drive,format=raw" -device "nvme,id=n$drive,serial=drive$drive$with"
      -device "nvme-ns,drive=d$drive,bus=n$drive,nsid=1$handles")
  done
  timeout -k 5 900 "$qemu" "${data[@]}" -accel tcg,thread=multi -cpu max -machine q35 -smp 2 -m 2G -nodefaults -no-user-config \
    -display none -serial stdio -no-reboot -kernel "$(kernel_of "$guest")" -initrd "$work/initrd" "${drives[@]}" \
    -append "console=ttyS0 quiet loglevel=4 mitigations=off panic=-1 fdp=$fdp" </dev/null | stdbuf -oL tr -d '\r'
  grep -q '^guest: exit code 0$' "$work/log" || fail "the guest did not pass"
}
