# Running the program and looking at what it says, for the checks of the first hour. Sourced, not run; every check has a
# directory of its own, and is there.

# need TOOL...: skips the check where one of them is missing.
need() {
  local tool
  for tool in "$@"; do command -v "$tool" >/dev/null || skip "$tool is missing"; done
}

# run CODE COMMAND...: the program must end with this code (`x` = any but 0, and no crash); what it says is in `said`.
run() {
  local wanted=$1 code=0
  shift
  timeout -k 2 "${LIMIT:-120}" "$elastripe" "$@" >said.out 2>said.err </dev/null || code=$?
  cat said.out said.err >said
  echo "\$ elastripe $* -> $code"; head -c 1500 said; echo
  if grep -q panicked said || [ $code -eq 101 ] || [ $code -eq 124 ] || [ $code -ge 132 ]; then fail "elastripe $1: code $code"; fi
  if [ "$wanted" = x ]; then [ $code -ne 0 ] || fail "elastripe $1: code 0, an error was wanted"
  elif [ $code -ne "$wanted" ]; then fail "elastripe $1: code $code, wanted $wanted"; fi
}

# says TEXT...: each (a regular expression, case ignored) is in what the last command said. says_not: none is.
says() { local text; for text in "$@"; do grep -qiE -e "$text" said || fail "it does not say: $text"; done; }
says_not() { local text; for text in "$@"; do ! grep -iE -e "$text" said || fail "it says: $text"; done; }

# raid_of_three [SIZE [OPTION...]]: a 2+1 raid array of the files a0 a1 a2.
raid_of_three() {
  local size=${1:-32MiB}
  run 0 create --scheme raid --parity 1 --data a0 a1 a2 --file-size "$size" "${@:2}"
}

# serve MEMBER... -- OPTION...: starts a server; its words go to `server.log`.
serve() {
  local members=()
  while [ $# -gt 0 ] && [ "$1" != -- ]; do members+=("$1"); shift; done
  [ $# -eq 0 ] || shift
  : >server.log # what an earlier server said is no answer
  "$elastripe" serve "${members[@]}" --nbd "unix:$work/nbd" "$@" >server.log 2>&1 &
  server=$!
  note process $server
  soon 20 grep -q '^serving at' server.log || fail "serve: $(cat server.log)"
}

# end_server [SIGNAL]: and waits for it.
end_server() {
  kill -"${1:-TERM}" "$server"
  local code=0
  wait "$server" || code=$?
  echo "server ended with $code"
}

uri() { echo "nbd+unix:///?socket=$work/nbd"; }

# io COMMAND...: qemu-io commands on the served volume; io_fails: at least one must fail.
io() {
  local args=() text
  for text in "$@"; do args+=(-c "$text"); done
  timeout -k 2 120 qemu-io -f raw "${args[@]}" "$(uri)" >io.log 2>&1 || { cat io.log; fail "qemu-io $*"; }
  cat io.log
  ! grep -qiE 'error|failed' io.log || fail "qemu-io $*"
}
io_fails() {
  local args=() text
  for text in "$@"; do args+=(-c "$text"); done
  timeout -k 2 120 qemu-io -f raw "${args[@]}" "$(uri)" >io.log 2>&1 || return 0
  grep -qiE 'error|failed' io.log || fail "qemu-io $*: an error was wanted"
}

# yes_of COMMAND: its option that says the operator means it, where it has one.
yes_of() { ! "$elastripe" "$1" --help | grep -q -e '--yes' || echo --yes; }

# has_line TEXT: the server's log has it within 20 s. Nobody asks the server anything.
has_line() { soon 20 grep -q -e "$1" server.log || { cat server.log; fail "the server's log lacks: $1"; }; }

# data_start FILE CHUNK_BYTES: where the chunks of a main device begin (docs/format.md).
u32() { od -An -tu4 -j "$2" -N 4 "$1" | tr -d ' '; }
data_start() {
  local blocks=$((2 + 2 * $(u32 "$1" 216) + $(u32 "$1" 220) + $(u32 "$1" 224) + $(u32 "$1" 228) + $(u32 "$1" 3880)))
  echo $(((blocks * 4096 + 1048575) / 1048576 * 1048576))
}

# zero FILE OFFSET BYTES: all of them multiples of 4096.
zero() { dd if=/dev/zero of="$1" bs=4096 seek=$(($2 / 4096)) count=$(($3 / 4096)) conv=notrunc status=none; }
