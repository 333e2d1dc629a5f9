#!/usr/bin/env bash
# Makes the Debian package of the release binary with dpkg's own tools, and looks at what came of it.
#
#   scripts/deb.sh [DIRECTORY]      the package goes there (target/debian)
#
#   ELASTRIPE=FILE                  the binary (target/release/elastripe)
#   DEBFULLNAME, DEBEMAIL           who makes it
#
# The same commit gives the same package. Needs dpkg-dev; lintian, man and systemd-analyze look at it if they are there.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
target=${CARGO_TARGET_DIR:-$repo/target}
binary=${ELASTRIPE:-$target/release/elastripe}
out=${1:-$target/debian}
for tool in dpkg-deb dpkg-shlibdeps strip gzip; do
  command -v $tool >/dev/null || { echo "deb.sh: no $tool (apt-get install dpkg-dev binutils)" >&2; exit 1; }
done
[ -x "$binary" ] || { echo "deb.sh: no $binary; run make build first" >&2; exit 1; }

# Of a commit its time, of an archive without git that of the change log.
when=$(git -C "$repo" log -1 --format=%ct 2>/dev/null || stat -c %Y "$repo/CHANGELOG.md")
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$when}
commit=$(git -C "$repo" rev-parse --short=10 HEAD 2>/dev/null || echo source)
release=$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' "$repo/Cargo.toml")
version=$release~$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y%m%d%H%M).$commit
machine=$(dpkg --print-architecture)
maker="${DEBFULLNAME:-the elastripe authors} <${DEBEMAIL:-authors@elastripe.invalid}>"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
umask 022
# into MODE FILE DIRECTORY [NAME]
into() { install -D -m "$1" "$2" "$root$3/${4:-$(basename "$2")}"; }

into 755 "$binary" /usr/bin
strip --strip-unneeded --remove-section=.comment --remove-section=.note "$root/usr/bin/elastripe"
for unit in "$repo"/contrib/systemd/*; do into 644 "$unit" /lib/systemd/system; done
into 644 "$repo/contrib/udev/63-elastripe.rules" /lib/udev/rules.d
"$binary" man "$root/usr/share/man/man1"
for shell in bash:bash-completion/completions/elastripe zsh:zsh/vendor-completions/_elastripe \
             fish:fish/vendor_completions.d/elastripe.fish; do
  "$binary" completions "${shell%%:*}" >"$work/completions"
  into 644 "$work/completions" "/usr/share/$(dirname "${shell#*:}")" "$(basename "${shell#*:}")"
done
install -d -m 755 "$root/etc/elastripe"
doc=/usr/share/doc/elastripe
for file in "$repo"/README.md "$repo"/docs/*.md; do into 644 "$file" $doc; done
for file in "$repo"/docs/pictures/*; do into 644 "$file" $doc/pictures; done
for file in "$repo"/docs/decisions/*.md; do into 644 "$file" $doc/decisions; done
for file in "$repo"/contrib/prometheus/*; do into 644 "$file" $doc/examples/prometheus; done
into 644 "$repo/CHANGELOG.md" $doc changelog
cat >"$work/copyright" <<END
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: elastripe

Files: *
Copyright: 2026 the elastripe authors
License: Apache-2.0 or MIT

License: Apache-2.0
 On Debian systems, the full text of the Apache License, Version 2.0, is in
 /usr/share/common-licenses/Apache-2.0.

License: MIT
$(tail -n +3 "$repo/LICENSE-MIT" | sed 's/^$/./; s/^/ /')
END
into 644 "$work/copyright" $doc
cat >"$work/changelog" <<END
elastripe ($version) unstable; urgency=medium

  * Built from commit $commit; what is new is in changelog.gz.

 -- $maker  $(date -u -R -d "@$SOURCE_DATE_EPOCH")
END
into 644 "$work/changelog" $doc changelog.Debian
find "$root/usr/share/man" -type f -exec gzip -9n {} +
gzip -9n "$root$doc/changelog" "$root$doc/changelog.Debian"

# What the binary is linked with, in the words of this system's packages.
mkdir "$work/debian"
printf 'Source: elastripe\n\nPackage: elastripe\nArchitecture: %s\nDescription: elastripe\n' "$machine" >"$work/debian/control"
depends=$(cd "$work" && dpkg-shlibdeps -O "$root/usr/bin/elastripe" 2>/dev/null | sed -n 's/^shlibs:Depends=//p')
install -d -m 755 "$root/DEBIAN"
cat >"$root/DEBIAN/control" <<END
Package: elastripe
Version: $version
Architecture: $machine
Maintainer: $maker
Installed-Size: $(du -sk --apparent-size "$root" | cut -f1)
Depends: $depends
Suggests: nbd-client, nbdfuse, prometheus
Section: admin
Priority: optional
Description: RAID of SSDs in user space, with elastic parity
 One binary that makes an array of SSDs and log devices and exports it as one
 volume over NBD. Parity of updates goes to log devices first and to the SSDs
 later, so that the SSDs are written less; a power cut at any moment leaves no
 write hole.
 .
 With it come a unit for systemd, a rule for udev, pages of the manual and
 completions for bash, zsh and fish.
END
# Nothing is started or stopped: an array stays served while its program is replaced.
cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
set -e
if [ "$1" = configure ]; then
  if [ -d /run/systemd/system ]; then systemctl daemon-reload || true; fi
  if [ -S /run/udev/control ]; then udevadm control --reload || true; fi
fi
END
cp "$root/DEBIAN/postinst" "$root/DEBIAN/postrm"
sed -i 's/"\$1" = configure/"$1" = remove/' "$root/DEBIAN/postrm"
chmod 755 "$root/DEBIAN/postinst" "$root/DEBIAN/postrm"
(cd "$root" && find usr lib etc -type f -exec md5sum {} + | LC_ALL=C sort -k 2 >DEBIAN/md5sums)
find "$root" -newermt "@$SOURCE_DATE_EPOCH" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
mkdir -p "$out"
package=$out/elastripe_${version}_$machine.deb
dpkg-deb --root-owner-group -Zxz --build "$root" "$package" >/dev/null

# Looked at from outside: unpacked as anybody would.
fail() { echo "deb.sh: $*" >&2; exit 1; }
seen=$work/seen
dpkg-deb -x "$package" "$seen"
[ "$("$seen/usr/bin/elastripe" --version)" = "$("$binary" --version)" ] || fail "the binary in the package is another"
(cd "$work" && "$seen/usr/bin/elastripe" create --scheme eplog --parity 1 --file-size 32MiB --data a b c --log l >create.log &&
  "$seen/usr/bin/elastripe" status a b c l >status.log) || fail "the binary in the package does not work"
bash -n "$seen/usr/share/bash-completion/completions/elastripe" || fail "the completions for bash"
for page in "$seen"/usr/share/man/man1/*.gz; do
  ! command -v man >/dev/null && break
  complaints=$(LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -E UTF-8 -l "$page" 2>&1 >/dev/null)
  [ -z "$complaints" ] || fail "$page: $complaints"
done
if command -v systemd-analyze >/dev/null; then
  # It looks for the binary where it will be.
  for unit in service socket; do
    sed "s|/usr/bin/elastripe|$seen/usr/bin/elastripe|" "$seen/lib/systemd/system/elastripe@.$unit" >"$work/elastripe@tank.$unit"
  done
  complaints=$(systemd-analyze verify --man=no "$work"/elastripe@tank.* 2>&1 | grep -F elastripe || true)
  [ -z "$complaints" ] || fail "the units: $complaints"
fi
if command -v lintian >/dev/null; then
  lintian --fail-on error --allow-root --tag-display-limit 0 "$package" || fail "lintian finds errors"
fi
echo "$package"
