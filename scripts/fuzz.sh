#!/usr/bin/env bash
# Runs every fuzz target for FUZZ_SECONDS (default 20) each, from the committed seeds and what earlier runs found; fails on
# a crash, whose input is then in fuzz/artifacts. FUZZ_TARGETS names some of them. Needs cargo-fuzz and a nightly toolchain;
# says so and ends well where they are missing, unless FUZZ_REQUIRED is set.
set -euo pipefail
cd "$(dirname "$0")/../fuzz"

missing() {
  echo "fuzz: SKIPPED: $1" >&2
  if [ -n "${FUZZ_REQUIRED:-}" ]; then exit 1; fi
  exit 0
}
command -v cargo-fuzz >/dev/null || missing "cargo-fuzz is not installed (cargo install cargo-fuzz --locked)"
cargo +nightly --version >/dev/null 2>&1 || missing "no nightly toolchain (rustup toolchain install nightly)"

read -ra targets <<<"${FUZZ_TARGETS:-$(cargo +nightly fuzz list | tr '\n' ' ')}"
cargo +nightly fuzz build
for target in "${targets[@]}"; do
  echo "== $target"
  mkdir -p "corpus/$target" "seeds/$target"
  if ! cargo +nightly fuzz run "$target" "corpus/$target" "seeds/$target" -- \
    -max_total_time="${FUZZ_SECONDS:-20}" -max_len=20000 -len_control=20 -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    >"corpus/$target.log" 2>&1; then
    tail -n 40 "corpus/$target.log" >&2
    echo "fuzz: $target crashed" >&2
    exit 1
  fi
  grep -aE 'stat::(number_of_executed_units|average_exec_per_sec)|DONE' "corpus/$target.log" || true
done
