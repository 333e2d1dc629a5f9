#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, simulator, documentation, real clients.
# What mostly waits (for servers, clients, disks) runs beside what computes; what it says comes when it is over.
#   ELASTRIPE_SIM_WORLDS=5000  ELASTRIPE_SIM_SECONDS=30 (of fresh seeds)  ELASTRIPE_ORDEAL_ROUNDS=60  CRASHES=2
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
target=${CARGO_TARGET_DIR:-target}
step() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }

# try COMMAND...: what fails is told at the end, and the rest goes on.
failed=()
try() { "$@" || failed+=("$*"); }

# begin FUNCTION: from here on it runs beside; end: it is over.
log=$(mktemp --suffix=.elastripe-test)
beside= name=
begin() {
  set -m   # a process group of its own
  "$1" </dev/null >"$log" 2>&1 & beside=$! name=$1
  set +m
}
end() {
  local code=0
  wait "$beside" || code=$?
  beside=
  cat "$log"
  [ "$code" -eq 0 ] || failed+=("$name")
}
finish() {
  trap - EXIT INT TERM
  if [ -n "$beside" ]; then
    kill -TERM -- "-$beside" 2>/dev/null || true
    wait "$beside" || true
    cat "$log"
  fi
  rm -f "$log"
}
trap finish EXIT
trap 'exit 130' INT TERM

# The shipped binary, from outside.
from_outside() {
  local failed=()
  step "real clients";  CRASHES="${CRASHES:-2}" try scripts/clients.sh info copy qemu-img qemu-io fio ext4 xfs crash
  step "ordeal";        try "$target"/release/elastripe-ordeal --rounds "${ELASTRIPE_ORDEAL_ROUNDS:-60}"
  step "first hour";    try scripts/first-hour.sh
  [ ${#failed[@]} -eq 0 ] || { printf 'FAILED: %s\n' "${failed[@]}"; return 1; }
}

# The binary as operators use it; most of these tests wait for something, most of the time.
operators() {
  step "operators' tests"
  RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))} cargo test --workspace --locked --test operator
}
# All others, but those that want a feature, as their manifest says.
others=()
for path in crates/*/tests/*.rs crates/*/tests/*/main.rs; do
  test=${path%/main.rs} test=${test##*/} test=${test%.rs}
  [ "$test" = operator ] || grep -A1 '^\[\[test\]\]' "${path%%/tests/*}/Cargo.toml" | grep -q "^name = \"$test\"$" ||
    others+=(--test "$test")
done

step "format";        cargo fmt --all --check
step "lints";         cargo clippy --workspace --all-targets --locked -- -D warnings
# Nothing is linked, so its C++ need not be built.
step "fuzz targets";  CUSTOM_LIBFUZZER_PATH=none/libnone.a cargo check --manifest-path fuzz/Cargo.toml --locked --target-dir "$target"
step "release build"; cargo build --release --locked
begin from_outside
step "build of the tests"
nice -n 10 cargo test --workspace --locked --no-run
end
begin operators
step "tests";         try cargo test --workspace --locked --no-fail-fast --lib --bins "${others[@]}"
step "documentation's tests"; try cargo test --workspace --locked --doc
step "simulator, fixed seeds"
try "$target"/release/elastripe-sim --from 0 --worlds "${ELASTRIPE_SIM_WORLDS:-5000}"
step "simulator, fresh seeds"
try "$target"/release/elastripe-sim --seconds "${ELASTRIPE_SIM_SECONDS:-30}" --from "$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
step "documentation"; RUSTDOCFLAGS="-D warnings" try cargo doc --workspace --no-deps --locked
end
if [ ${#failed[@]} -gt 0 ]; then
  step "FAILED"
  printf '%s\n' "${failed[@]}"
  exit 1
fi
step "all passed"
