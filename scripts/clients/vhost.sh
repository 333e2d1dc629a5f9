# The array as a virtio disk of QEMU (serve --vhost-user-blk), in an emulated machine. Sourced by clients.sh.
#
# What happens in there is in vhost-guest.sh. Kernel and busybox are those of ublk.sh. What the guest cannot
# do itself it asks of this side, by a line "host: WISH" on its console, and reads an answer there. Everything
# is emulated, so nothing in here says how fast anything is.

# grow_members: twice the room in each data member.
grow_members() {
  local member
  for member in "${members[@]:0:8}"; do truncate -s $(($(stat -c %s "$member") * 2)) "$member"; done
  timeout 300 "$elastripe" grow "${members[@]}" || fail "grow: exit code $?"
}

# refuse_stop: a guest is a client, which a stop minds.
refuse_stop() {
  ! timeout 60 "$elastripe" stop "${members[@]}" >"$work/stop" 2>&1 || fail "stopped beneath a guest"
  grep -q '1 client is connected' "$work/stop" || fail "stop: $(cat "$work/stop")"
  cat "$work/stop"
}

# grant WISH: does what the guest has asked for, and answers.
grant() {
  local answer=done
  case $1 in
    fail) lose data1 ;;
    renew) renew data1 1; await_healthy ;;
    grow) grow_members; answer=$(timeout 60 nbdinfo --size "$uri") ;;
    stop) refuse_stop ;;
    *) fail "the guest asks for $1" ;;
  esac
  echo "$answer" >&3
}

# run_guest DIRECTORY ARGUMENT...: until it is off; sets `sum`, of the disk as the guest has read it at last.
run_guest() {
  local guest=$1 qemu=${QEMU:-qemu-system-x86_64} data=() directory vm line code=0
  shift
  for directory in ${QEMU_DATA:-}; do data+=(-L "$directory"); done
  mkfifo "$work/to" "$work/from"
  exec 3<>"$work/to"
  "$qemu" "${data[@]}" -accel tcg,thread=multi -cpu max -machine q35,memory-backend=ram -smp 2 -m 1G \
    -object memory-backend-memfd,id=ram,size=1G,share=on -chardev "socket,id=disk,path=$work/disk" \
    -device vhost-user-blk-pci,chardev=disk,num-queues=2 -nodefaults -no-user-config -display none -serial stdio \
    -no-reboot -kernel "$(kernel_of "$guest")" -initrd "$work/initrd" \
    -append "console=ttyS0 quiet loglevel=4 mitigations=off panic=-1 $*" <"$work/to" >"$work/from" 2>&1 &
  vm=$!
  note "process $vm"
  exec 4<"$work/from"
  while read -r line <&4; do
    line=${line%$'\r'}
    echo "$line"
    case $line in
      "host: "*) grant "${line#host: }" ;;
      "sum: "*) sum=${line#sum: } ;;
    esac
  done
  wait "$vm" || code=$?
  [ $code -eq 0 ] || fail "the emulator ended with exit code $code"
  grep -q '^guest: exit code 0$' "$work/log" || fail "the guest did not pass"
}

# test_vhost SCHEME: see vhost-guest.sh.
test_vhost() {
  local tool guest=${UBLK_CACHE:-${CARGO_TARGET_DIR:-$repo/target}/ublk-guest} root=$work/root shards=1 sum=
  local tools=(mkfs.ext4 e2fsck resize2fs blkdiscard fstrim fio) programs=()
  for tool in "${QEMU:-qemu-system-x86_64}" xz nbdcopy "${tools[@]}"; do
    command -v "$tool" >/dev/null || skip "$tool is not installed"
  done
  fetch_guest "$guest"
  mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,run,mnt,lib,etc}
  for tool in "${tools[@]}"; do programs+=("$(command -v "$tool")"); done
  with_libraries "$root" "${programs[@]}"
  with_modules "$root" "$guest/tree" virtio_pci virtio_blk ext4 crc32c_generic
  make_initrd "$root" "$guest/tree/bin/busybox" vhost-guest.sh
  [ "$1" = eplog ] || shards=2
  make_array "$1" 64MiB --shards $shards
  start_server --vhost-user-blk "$work/disk" --socket-threads 2
  run_guest "$guest" "bytes=$(nbdinfo --size "$uri")" "uuid=$(timeout 60 "$elastripe" status "${members[@]}" --json |
    sed -n 's/^ *"uuid": "\([^"]*\)".*/\1/p')"
  stop_server
  expect_status 0
  scrub
  # What the guest has read is what another sees, of a server that knows only what is on the members.
  start_server
  timeout 120 nbdcopy "$uri" "$work/image"
  [ "$(md5sum <"$work/image" | cut -d' ' -f1)" = "$sum" ] || fail "other bytes over NBD than in the guest"
  disk=$work/image check_fs ext4
  stop_server
}
