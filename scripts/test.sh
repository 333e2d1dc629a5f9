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
# Nothing is linked, so its C++ need not be built.
step "fuzz targets";  CUSTOM_LIBFUZZER_PATH=none/libnone.a cargo check --manifest-path fuzz/Cargo.toml --locked --target-dir "$target"
step "release build"; cargo build --release --locked
# Many tests of the binary wait for servers, clients and disks.
export RUST_TEST_THREADS=${RUST_TEST_THREADS:-$((3 * $(nproc)))}
step "tests";         cargo test --workspace --locked --no-fail-fast
step "simulator, fixed seeds"
"$target"/release/elastripe-sim --from 0 --worlds "${ELASTRIPE_SIM_WORLDS:-5000}"
step "simulator, fresh seeds"
"$target"/release/elastripe-sim --seconds "${ELASTRIPE_SIM_SECONDS:-30}" --from "$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')"
step "documentation"; RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
step "real clients";  CRASHES="${CRASHES:-2}" scripts/clients.sh info copy qemu-img qemu-io fio ext4 xfs crash
step "ordeal";        "$target"/release/elastripe-ordeal --rounds "${ELASTRIPE_ORDEAL_ROUNDS:-60}"
step "first hour";    scripts/first-hour.sh
step "all passed"
