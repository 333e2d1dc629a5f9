#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, simulator, documentation, real clients.
# What mostly waits (for servers, clients, disks) runs beside what computes, which steps back for it; what it says comes
# when it is over.
#   ELASTRIPE_SIM_WORLDS=5000  ELASTRIPE_SIM_SECONDS=30 (of fresh seeds)  ELASTRIPE_ORDEAL_ROUNDS=60  CRASHES=2
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
target=${CARGO_TARGET_DIR:-target}
step() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }

log=$(mktemp --suffix=.elastripe-test)
beside=
trap 'if [ -n "$beside" ]; then kill -TERM -- "-$beside" 2>/dev/null && wait "$beside"; fi || true; rm -f "$log"' EXIT
trap 'exit 130' INT TERM
set -m   # what runs beside has a process group of its own
# begin FUNCTION: from here on it runs beside; end: it is over, and passed.
begin() { "$1" </dev/null >"$log" 2>&1 & beside=$!; }
end() {
  local code=0
  wait "$beside" || code=$?
  beside=
  cat "$log"
  return "$code"
}

# The shipped binary, from outside.
from_outside() {
  step "real clients";  CRASHES="${CRASHES:-2}" scripts/clients.sh info copy qemu-img qemu-io fio ext4 xfs crash
  step "ordeal";        "$target"/release/elastripe-ordeal --rounds "${ELASTRIPE_ORDEAL_ROUNDS:-60}"
  step "first hour";    scripts/first-hour.sh
}

# The binary as operators use it. Many of these tests wait for something.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
operators() { step "operators' tests"; cargo test --workspace --locked --test operator; }
others=()
for path in crates/*/tests/*.rs crates/*/tests/*/main.rs; do
  name=${path%/main.rs} name=${name##*/} name=${name%.rs}
  [ "$name" = operator ] || others+=(--test "$name")
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
step "tests"
nice -n 10 cargo test --workspace --locked --no-fail-fast --lib --bins --examples "${others[@]}"
nice -n 10 cargo test --workspace --locked --doc
step "simulator, fixed seeds"
nice -n 10 "$target"/release/elastripe-sim --from 0 --worlds "${ELASTRIPE_SIM_WORLDS:-5000}"
step "simulator, fresh seeds"
nice -n 10 "$target"/release/elastripe-sim --seconds "${ELASTRIPE_SIM_SECONDS:-30}" --from "$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
end
step "documentation"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
step "all passed"
