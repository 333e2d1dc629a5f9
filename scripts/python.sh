#!/usr/bin/env bash
# Builds the Python package as a wheel, installs it into a fresh virtual environment and tests it there; everything below
# python/target. Installs Debian's python3 and python3-venv if they are missing (as root or through sudo), packages from PyPI as
# pinned in python/requirements.txt. The wheel stays in python/target/wheels.
set -euo pipefail
cd "$(dirname "$0")/../python"
python=${PYTHON:-python3}

has_venv() { "$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }
if ! has_venv; then
  command -v apt-get >/dev/null || { echo "python: needs Python 3.11 or newer with venv; please install it" >&2; exit 1; }
  as_root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || { echo "python: neither root nor sudo: please install python3-venv" >&2; exit 1; }
    as_root=(sudo)
  fi
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null
  has_venv || { echo "python: $("$python" --version) with venv is not 3.11 or newer; name another one in PYTHON" >&2; exit 1; }
fi

rm -rf target/venv target/wheels
"$python" -m venv target/venv
bin=$PWD/target/venv/bin
"$bin/pip" install --quiet --disable-pip-version-check --requirement requirements.txt
# Without PYTHONPATH, so that what is tested is what was installed.
unset PYTHONPATH
"$bin/maturin" build --release --locked --quiet --out target/wheels --interpreter "$bin/python"
"$bin/pip" install --quiet --disable-pip-version-check --no-deps target/wheels/elastripe-*.whl
"$bin/python" -I -c 'import elastripe; print("python: elastripe", elastripe.__version__, "from", elastripe.__file__)'
# Not `python -m pytest`, which would find the sources before the package.
"$bin/pytest" "$@"
