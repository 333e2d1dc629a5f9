#!/usr/bin/env bash
# Installs the Debian packages that building, the demonstration and the tests use. Does nothing where all are there.
#
#   scripts/setup.sh [deb]      deb: and those that make a package of it
set -euo pipefail

# The toolchain comes first: nothing is installed in vain.
least=1.90
advice="install a Rust toolchain, $least or newer, by rustup (that of Debian is older), and try again"
command -v cargo >/dev/null || { echo "setup: cargo not found: $advice" >&2; exit 1; }
found=$(cargo --version | cut -d' ' -f2)
[ "$(printf '%s\n' "$least" "$found" | sort -V | head -1)" = "$least" ] || { echo "setup: cargo $found is too old: $advice" >&2; exit 1; }

# command it provides : package
need=(cc:gcc fio:fio nbdinfo:libnbd-bin nbdfuse:nbdfuse nbdkit:nbdkit qemu-io:qemu-utils
      openssl:openssl redis-cli:redis-tools mkfs.ext4:e2fsprogs mkfs.xfs:xfsprogs fusermount3:fuse3 losetup:mount)
[ "${1:-}" != deb ] || need+=(dpkg-shlibdeps:dpkg-dev strip:binutils)
missing=()
for pair in "${need[@]}"; do
  PATH=$PATH:/usr/sbin:/sbin command -v "${pair%%:*}" >/dev/null || missing+=("${pair#*:}")
done
[ ${#missing[@]} -eq 0 ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "setup: no apt-get here: please install ${missing[*]}; tests that need them will be skipped" >&2
  exit 0
fi
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: neither root nor sudo: please install ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
