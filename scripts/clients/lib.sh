# Arrays, servers, bridges to the kernel, and their orderly end, for the tests in this directory. Sourced, not run.
#
# Whatever a test makes that outlives a shell (process, mount, loop device, FUSE mount) is noted in $work/resources as it
# is made. `give_back` returns it all, newest first, from the test itself or, when the test had to be killed, from outside.
# Nothing waits without a limit: a client may hang on a server that is gone, and the kernel with it.

fail() { echo "FAIL: $*" >&2; exit 1; }

# Ends the test as skipped.
skip() { echo "$*" >"$work/skipped"; exit 77; }

note() { echo "$*" >>"$work/resources"; }

# ours PID: a live process that has this test's directory in its command line (process numbers are reused). While a process
# turns into another program it has none, for a moment.
ours() { command_line "$1" | grep -qF "$work" || { [ -z "$(command_line "$1")" ] && sleep 0.05 && command_line "$1" | grep -qF "$work"; }; }
command_line() { tr '\0' ' ' <"/proc/$1/cmdline"; } 2>/dev/null

# soon SECONDS COMMAND...: repeats the command until it succeeds; fails when time is up.
soon() {
  local until=$((SECONDS + $1)); shift
  while ! "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $until ] || return 1
    sleep 0.05
  done
}
gone() { ! ours "$1"; }

# end_process PID [SIGNAL [SECONDS]]: sends the signal, then SIGKILL when time is up.
end_process() {
  ours "$1" || return 0
  kill -"${2:-TERM}" "$1" 2>/dev/null || return 0
  soon "${3:-5}" gone "$1" || { kill -KILL "$1" 2>/dev/null; soon 5 gone "$1"; }
}

is_mounted() { grep -qF " $1 " /proc/self/mounts; }
not_mounted() { ! is_mounted "$1"; }
loop_free() { ! losetup "$1" >/dev/null 2>&1; }

drop_mount() {
  is_mounted "$1" || return 0
  timeout -k 1 10 umount "$1" 2>/dev/null || umount -l "$1" 2>/dev/null || true
}
drop_loop() {
  loop_free "$1" && return 0
  losetup -j "$work/fuse/nbd" 2>/dev/null | grep -q "^$1:" || losetup "$1" 2>/dev/null | grep -qF "$work" || return 0
  timeout -k 1 10 losetup -d "$1" 2>/dev/null || true
  soon 10 loop_free "$1" || echo "warning: $1 is still in use" >&2
}
drop_fuse() {
  is_mounted "$1" || return 0
  timeout -k 1 10 fusermount3 -u "$1" 2>/dev/null || timeout -k 1 10 fusermount3 -uz "$1" 2>/dev/null || umount -l "$1" || true
}

# Returns everything. A bridge whose server is dead answers errors, a bridge that is dead aborts its requests, so after the
# processes' end no unmounting can block.
give_back() {
  [ -f "$work/resources" ] || return 0
  local kind what
  while read -r kind what; do
    [ "$kind" = process ] && end_process "$what" KILL
  done < <(tac "$work/resources")
  while read -r kind what; do
    case $kind in
      mount) drop_mount "$what" ;;
      loop) drop_loop "$what" ;;
      fuse) drop_fuse "$what" ;;
    esac
  done < <(tac "$work/resources")
  rm -f "$work/resources"
}

# ---- arrays

# make_array SCHEME SIZE [OPTION...]: a 6+2 array, with two log devices where the scheme has any; sets `members`.
make_array() {
  local i
  scheme=$1 members=()
  mkdir -p "$work/members"
  for i in 0 1 2 3 4 5 6 7; do members+=("$work/members/ssd$i"); done
  local options=(--scheme "$scheme" --parity 2 "${@:3}" --file-size "$2" --data "${members[@]}")
  case $scheme in
    eplog) members+=("$work/members/log0" "$work/members/log1"); options+=(--log "${members[@]:8}") ;;
    raid) options+=(--consistency journal) ;;
  esac
  timeout 300 "$elastripe" create "${options[@]}"
}

# commits N: the option that has a scheme commit parity after N writes, if it is one that commits.
commits() { case $scheme in eplog | parity-log) echo "--commit-every $1" ;; esac; }

# start_server [OPTION...]: serves `members` at $uri and waits until it answers; sets `server`.
start_server() {
  socket=$work/socket uri="nbd+unix:///?socket=$work/socket"
  "$elastripe" serve "${members[@]}" --nbd "unix:$socket" "$@" </dev/null >>"$work/server.log" 2>&1 &
  server=$!
  note "process $server"
  local until=$((SECONDS + 30))
  until timeout 5 nbdinfo --size "$uri" >/dev/null 2>&1; do
    ours "$server" || fail "the server ended: $(tail -n 3 "$work/server.log")"
    [ $SECONDS -lt $until ] || fail "the server does not answer after 30 s: $(tail -n 3 "$work/server.log")"
    sleep 0.05
  done
}

# stop_server: in order, as an operator would.
stop_server() {
  local code=0
  kill -TERM "$server" || fail "the server was gone before it was stopped: $(tail -n 3 "$work/server.log")"
  soon 30 gone "$server" || fail "the server did not stop within 30 s of SIGTERM"
  wait "$server" || code=$?
  [ $code -eq 0 ] || fail "the server stopped with exit code $code: $(tail -n 3 "$work/server.log")"
}

# kill_server: as a crash would.
kill_server() {
  kill -KILL "$server" || fail "the server was gone before it was killed: $(tail -n 3 "$work/server.log")"
  soon 10 gone "$server" || fail "the server outlived SIGKILL for 10 s"
  wait "$server" 2>/dev/null || true
}

# What fio complained of (its results are long lines).
show_fio() { grep -av '^3;' "$work/fio.log" | tail -n 20 || true; }

# expect_status CODE: 0 healthy, 1 degraded, 2 failed.
expect_status() {
  local code=0
  timeout 300 "$elastripe" status "${members[@]}" >"$work/status" 2>&1 || code=$?
  [ $code -eq "$1" ] || { cat "$work/status"; fail "status: exit code $code, expected $1"; }
}
status_is() { local code=0; timeout 300 "$elastripe" status "${members[@]}" || code=$?; [ $code -eq "$1" ]; }

# lose NAME: takes a device out of the served array.
lose() { timeout 300 "$elastripe" fail "${members[@]}" --device "$1" --yes; }

# renew NAME INDEX: puts a fresh file in the place of member NAME, which is INDEX among `members`; the rebuild begins.
renew() {
  local fresh=$work/members/$1-$RANDOM
  timeout 300 "$elastripe" replace "${members[@]}" --device "$1" --yes --with "$fresh" --file-size "$(stat -c %s "${members[$2]}")B"
  members[$2]=$fresh
}

await_healthy() { soon 60 status_is 0 || { status_is 0; fail "not healthy after 60 s"; }; }

# Every chunk, parity and log chunk is right, as the array itself sees it.
scrub() { timeout 300 "$elastripe" scrub "${members[@]}" || fail "scrub: exit code $?"; }

# ---- from NBD to a kernel block device and a file system

need_bridge() {
  [ "$(id -u)" -eq 0 ] || skip "needs root (mounts a file system)"
  [ -c /dev/fuse ] || skip "no /dev/fuse"
  [ -c /dev/loop-control ] || skip "no loop devices"
  local tool
  for tool in nbdfuse losetup fusermount3; do command -v $tool >/dev/null || skip "$tool is not installed"; done
}

need_file_system() {
  command -v "mkfs.$1" >/dev/null || skip "mkfs.$1 is not installed"
  modprobe "$1" 2>/dev/null || true
  grep -qw "$1" /proc/filesystems || skip "this kernel has no $1"
}

# bridge_up: nbdfuse shows the export as a file, a loop device with direct I/O makes that a disk; sets `disk`.
bridge_up() {
  mkdir -p "$work/fuse"
  note "fuse $work/fuse"
  nbdfuse -C 4 "$work/fuse/" "$uri" </dev/null >>"$work/nbdfuse.log" 2>&1 &
  bridge=$!
  note "process $bridge"
  soon 10 test -e "$work/fuse/nbd" || fail "nbdfuse shows nothing after 10 s: $(tail -n 3 "$work/nbdfuse.log")"
  disk=$(timeout 10 losetup --direct-io=on --show -f "$work/fuse/nbd") || skip "no loop device to be had"
  note "loop $disk"
}

# bridge_down: also when the server is gone.
bridge_down() {
  drop_loop "$disk"
  drop_fuse "$work/fuse"
  # nbdfuse ends by itself when it is unmounted.
  soon 5 gone "$bridge" || end_process "$bridge"
  wait "$bridge" 2>/dev/null || true
}

make_fs() {
  case $1 in
    ext4) timeout 300 mkfs.ext4 -q -F "$disk" ;;
    xfs) timeout 300 mkfs.xfs -q -f "$disk" ;;
  esac
}

mount_fs() {
  mnt=$work/mnt
  mkdir -p "$mnt"
  note "mount $mnt"
  timeout 300 mount -t "$1" "$disk" "$mnt"
}

unmount_fs() { timeout -k 1 60 umount "$mnt"; }

# check_fs TYPE: reads only, finds nothing to repair.
check_fs() {
  case $1 in
    ext4) timeout 300 e2fsck -fn "$disk" >"$work/fsck" 2>&1 ;;
    xfs) timeout 300 xfs_repair -n "$disk" >"$work/fsck" 2>&1 ;;
  esac || { tail -n 20 "$work/fsck"; fail "$1 is not clean"; }
}
