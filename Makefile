# `make run` shows the product at work, `make test` proves it; both install what a fresh Debian machine lacks (as root or
# through sudo; a Rust toolchain must be there).
CARGO ?= cargo

.PHONY: run test setup build deb bench crash ordeal fuzz python clean

run: setup
	$(CARGO) build --release --locked -p elastripe
	scripts/demo.sh

test: setup
	scripts/test.sh

setup:
	scripts/setup.sh

build:
	$(CARGO) build --release --locked

# A Debian package with the binary, unit, udev rule, manual, completions; looked at by lintian if that is there.
deb: build
	scripts/setup.sh deb
	scripts/deb.sh

# Speed of the codes and of the engine, schemes side by side in one run.
bench: build
	$(CARGO) bench --locked -p elastripe-erasure
	$(or $(CARGO_TARGET_DIR),target)/release/elastripe bench --device both --geometry 6+2 --schemes eplog,raid --workload all
	$(or $(CARGO_TARGET_DIR),target)/release/elastripe bench --device memory --geometry 6+2 --schemes raid,parity-log,eplog,elastic,was --workload burst,randwrite,sustained,seqwrite --volume-size 256MiB

# The server killed under load, file systems on it checked afterwards; ten times each.
crash: build
	CRASHES=10 scripts/clients.sh crash fio-faults

# 1,000 rounds of kills, damage and losses against the release binary, judged from outside (docs/testing.md).
ordeal: build
	$(or $(CARGO_TARGET_DIR),target)/release/elastripe-ordeal --rounds 1000 --failures 20 --keep

# Coverage-guided fuzzing of every decoder and of the NBD server (needs cargo-fuzz and a nightly toolchain).
fuzz:
	scripts/fuzz.sh

# The Python package: wheel, a fresh virtual environment, its tests (docs/python.md). Nothing else needs Python.
python:
	scripts/python.sh

clean:
	$(CARGO) clean
	rm -rf python/target
