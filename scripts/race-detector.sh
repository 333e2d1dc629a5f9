#!/usr/bin/env bash
# A race detector's word on what crosses threads: the queues under Miri, in 32 schedules, and under thread sanitizer with
# the tests of what leads to them; then the shipped program serving an array of two shards, each on a thread of its own, to
# clients on two threads of sockets, while fio writes, reads and verifies through four connections and an operator asks for
# the status, takes a member out of service and has it rebuilt, with an instrumented standard library. Takes the nightly
# toolchain with two components (rustup toolchain install nightly --component rust-src miri). Not part of `make test`,
# which asks for the stable toolchain alone.
set -euo pipefail
repo=$(cd "$(dirname "$0")/.." && pwd)
cd "$repo"
target=x86_64-unknown-linux-gnu
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$repo/target}/race-detector

cargo +nightly miri --version >/dev/null ||
  { echo "race-detector.sh: no Miri: rustup component add miri --toolchain nightly" >&2; exit 1; }
MIRIFLAGS="-Zmiri-many-seeds=0..32 -Zmiri-disable-isolation" \
  cargo +nightly miri test -q -p elastripe-front --lib what_crosses_is_whole_and_comes_back
# Threads that help with transfers are lent what only the caller borrows.
MIRIFLAGS="-Zmiri-many-seeds=0..16 -Zmiri-disable-isolation" \
  cargo +nightly miri test -q -p elastripe-device --lib helpers
# What codes do with pieces that each have memory of their own, as the array's buffers have: their pointers.
cargo +nightly miri test -q -p elastripe-erasure --test equal apart

export RUSTFLAGS="-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer"
export TSAN_OPTIONS="halt_on_error=1 exitcode=66"
cargo=(cargo +nightly)
for tool in fio nbdinfo; do
  command -v "$tool" >/dev/null || { echo "race-detector.sh: no $tool; run make setup first" >&2; exit 1; }
done
[ -e "$(rustc +nightly --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ] ||
  { echo "race-detector.sh: no source of the nightly standard library: rustup component add rust-src --toolchain nightly" >&2; exit 1; }

"${cargo[@]}" test -q -Zbuild-std --target $target -p elastripe-front crossing
"${cargo[@]}" test -q -Zbuild-std --target $target -p elastripe-front --test served shards_apart
"${cargo[@]}" test -q -Zbuild-std --target $target -p elastripe-node --lib running
"${cargo[@]}" test -q -Zbuild-std --target $target -p elastripe-node --test shards_on_threads
"${cargo[@]}" build -q -Zbuild-std --target $target -p elastripe --bin elastripe
elastripe=$CARGO_TARGET_DIR/$target/debug/elastripe

work=$(mktemp -d --suffix=.elastripe-races)
export ELASTRIPE_RUN_DIR=$work/run
server=
trap 'if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" || true; fi; rm -rf "$work"' EXIT
cd "$work"
"$elastripe" create --scheme eplog --parity 1 --shards 2 --data d0 d1 d2 --log l0 --file-size 128MiB >/dev/null
serve_and_look_after() {
  "$elastripe" serve d0 d1 d2 l0 --threads 2 --socket-threads "$1" --nbd "unix:$work/s" >server.log 2>&1 &
  server=$!
  for _ in $(seq 300); do
    timeout 5 nbdinfo --size "nbd+unix:///?socket=$work/s" >/dev/null 2>&1 && break
    kill -0 "$server" || { cat server.log >&2; exit 1; }
    sleep 0.1
  done
  fio --thread --name=job --ioengine=nbd --uri="nbd+unix:///?socket=$work/s" --rw=randrw --bs=4k-256k --iodepth=8 --numjobs=4 \
    --size=40m --offset_increment=40m --verify=crc32c --verify_fatal=1 --fsync=50 --output-format=terse >fio.log &
  clients=$!
  for _ in $(seq 10); do "$elastripe" status d0 >/dev/null; sleep 0.5; done
  "$elastripe" fail d0 --device data1 --yes
  "$elastripe" status d0 >/dev/null || [ $? = 1 ]
  "$elastripe" replace d0 --device data1 --with "new-$1" --file-size 128MiB --wait
  wait "$clients"
  "$elastripe" scrub d0 --wait >/dev/null
  nbdinfo --map "nbd+unix:///?socket=$work/s" >/dev/null
  kill -TERM "$server"
  wait "$server" || { code=$?; cat server.log >&2; echo "race-detector.sh: the server ended with $code" >&2; exit 1; }
  server=
  if grep -q "ThreadSanitizer" server.log; then cat server.log >&2; exit 1; fi
}

# After the first, data1 is in the file that it was replaced by.
serve_and_look_after 2
mv new-2 d1
serve_and_look_after shards
echo "no data race was reported"
