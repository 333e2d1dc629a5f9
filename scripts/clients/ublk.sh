# The array as a disk of a kernel (ublk), in a virtual machine: the kernel of this machine need not have the driver. Sourced by
# clients.sh. What happens in there is in ublk-guest.sh.
#
# The kernel is that of Debian's backports, had by apt-get download from the mirror that this machine's Debian packages come from; it
# and a static busybox stay in $UBLK_CACHE (target/ublk-guest) for the next time. Everything is emulated (no /dev/kvm), so nothing in
# here says how fast anything is.

# fetch_guest DIRECTORY: unpacks kernel and busybox there.
fetch_guest() {
  local at=$1 package kernel
  [ ! -e "$at/complete" ] || return 0
  rm -rf "$at"
  mkdir -p "$at/lists/partial" "$at/cache/archives/partial"
  . /etc/os-release
  local release=${VERSION_CODENAME:-}-backports key=/usr/share/keyrings/debian-archive-keyring.gpg
  [ "${ID:-}" = debian ] || skip "kernels with ublk_drv are fetched from Debian's backports only"
  echo "deb [signed-by=$key] ${UBLK_MIRROR:-http://deb.debian.org/debian} $release main" >"$at/sources.list"
  local apt=(-o "Dir::Etc::sourcelist=$at/sources.list" -o Dir::Etc::sourceparts=- -o "Dir::State::lists=$at/lists"
    -o "Dir::Cache=$at/cache" -o APT::Sandbox::User=root -qq)
  (
    cd "$at"
    apt-get "${apt[@]}" update
    package=$(apt-cache "${apt[@]}" depends linux-image-amd64 | awk '/Depends: linux-image-/ { print $2; exit }')
    [ -n "$package" ]
    apt-get "${apt[@]}" download "$package"
    apt-get -o APT::Sandbox::User=root -qq download busybox-static
    for kernel in *.deb; do dpkg -x "$kernel" tree; done
    rm -rf lists cache ./*.deb
  ) || skip "no kernel from $release"
  touch "$at/complete"
}

# with_libraries ROOT FILE...: programs, and what they are linked with at its places below ROOT.
with_libraries() {
  local root=$1 file
  shift
  for file in "$@"; do
    mkdir -p "$root/sbin"
    cp -L "$file" "$root/sbin/"
    ldd "$file" | awk '$2 == "=>" { print $3 } $1 ~ /^\// { print $1 }'
  done | sort -u | while read -r file; do
    mkdir -p "$root$(dirname "$file")"
    cp -L "$file" "$root$file"
  done
}

# with_modules ROOT TREE NAME...: kernel modules, each after those that it needs. (Not by modprobe, which need not be installed.)
with_modules() {
  local root=$1 tree=$2 name file needs
  shift 2
  mkdir -p "$root/modules"
  for name in "$@"; do
    [ ! -e "$root/modules/$name.ko" ] || continue
    file=$(find "$tree" -name "$name.ko.xz" -o -name "${name//_/-}.ko.xz" | head -n 1)
    [ -n "$file" ] || continue # it is part of the kernel
    xz -dc "$file" >"$root/modules/$name.ko"
    needs=$(tr '\0' '\n' <"$root/modules/$name.ko" | sed -n 's/^depends=//p')
    # shellcheck disable=SC2086
    with_modules "$root" "$tree" ${needs//,/ }
    echo "$name.ko" >>"$root/modules/order"
  done
}

# make_initrd ROOT BUSYBOX SCRIPT: a first file system of ROOT, which is used up, in which the script runs.
make_initrd() {
  local root=$1 busybox=$2 script=$3
  cp "$busybox" "$root/bin/busybox"
  cp "$repo/scripts/clients/guest.sh" "$root/guest.sh"
  cp "$repo/scripts/clients/$script" "$root/guest"
  printf '#!/bin/busybox sh\n/bin/busybox --install -s /bin\nexport PATH=/sbin:/bin\nsh /guest\necho "guest: exit code $?"\npoweroff -f\n' >"$root/init"
  chmod +x "$root/init"
  (cd "$root" && find . | "$busybox" cpio -o -H newc) >"$work/initrd" 2>/dev/null
  rm -rf "$root"
}

# test_ublk: see ublk-guest.sh.
test_ublk() {
  local tool guest=${UBLK_CACHE:-${CARGO_TARGET_DIR:-$repo/target}/ublk-guest} root=$work/root
  for tool in qemu-system-x86_64 mkfs.ext4 e2fsck blkdiscard fio xz; do
    command -v $tool >/dev/null || skip "$tool is not installed"
  done
  fetch_guest "$guest"
  mkdir -p "$root"/{bin,sbin,dev,proc,sys,tmp,run,m,mnt,lib,etc}
  local busybox=$guest/tree/bin/busybox
  with_libraries "$root" "$elastripe" "$(command -v mkfs.ext4)" "$(command -v e2fsck)" "$(command -v blkdiscard)" "$(command -v fio)"
  [ -e "$root/sbin/elastripe" ] || mv "$root/sbin/$(basename "$elastripe")" "$root/sbin/elastripe"
  with_modules "$root" "$guest/tree" ublk_drv ext4 crc32c_generic
  make_initrd "$root" "$busybox" ublk-guest.sh
  timeout -k 5 900 qemu-system-x86_64 -accel tcg,thread=multi -cpu max -machine q35 -smp 2 -m 2G -nodefaults -no-user-config -display none \
    -serial stdio -no-reboot -kernel "$guest"/tree/boot/vmlinuz-* -initrd "$work/initrd" \
    -append "console=ttyS0 quiet loglevel=4 mitigations=off panic=-1 crashes=$crashes" </dev/null | stdbuf -oL tr -d '\r'
  grep -q '^guest: exit code 0$' "$work/log" || fail "the guest did not pass"
}
