#!/usr/bin/env bash
# Everything that must hold before a change lands: format, lints, tests, simulator, documentation, real clients.
# ELASTRIPE_SIM_SECONDS (default 30) is how long the simulator explores fresh seeds.
set -euo pipefail
cd "$(dirname "$0")/.."
export CARGO_TERM_COLOR=${CARGO_TERM_COLOR:-never}
target=${CARGO_TARGET_DIR:-target}
step() { printf '\n== %s (%ss)\n' "$*" "$SECONDS"; }

step "format";        cargo fmt --all --check
step "lints";         cargo clippy --workspace --all-targets --locked -- -D warnings
step "release build"; cargo build --release --locked
step "tests";         cargo test --workspace --locked
step "simulator, fixed seeds"
"$target"/release/elastripe-sim --from 0 --worlds "${ELASTRIPE_SIM_WORLDS:-10000}"
step "simulator, fresh seeds"
"$target"/release/elastripe-sim --seconds "${ELASTRIPE_SIM_SECONDS:-30}" --from "$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
step "documentation"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
step "real clients";  CRASHES="${CRASHES:-2}" scripts/clients.sh info copy qemu-img qemu-io fio ext4 xfs crash
# What is left out is known and not mended yet: scrub does not look at metadata and sizes, lost chunks are no state.
step "ordeal";        "$target"/release/elastripe-ordeal --rounds 60 --without truncate --without metadata --without beyond
# Those of the list that are mended.
step "first hour";    scripts/first-hour.sh A1 A2 A4 A5 A6 A12 B1 B2 B3 B7 B8 B9 C1 C2 C4 C5 C6 C7 C8 C10 C11 C12 C13 C16
step "all passed"
