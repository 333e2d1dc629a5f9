# What the scripts of the experiments begin with, to be sourced; `options` says which options the script takes. Sets elastripe,
# out, seed, requests (an array) and traces, a temporary folder that is gone at the end. Options of the script's own are given
# to its function `own_option NAME VALUE`, which fails if it knows no such option.
#
#   ELASTRIPE=target/release/elastripe
name=$(basename "$0")
repo=$(cd "$(dirname "$0")/../.." && pwd)
elastripe=${ELASTRIPE:-${CARGO_TARGET_DIR:-$repo/target}/release/elastripe}
out=${CARGO_TARGET_DIR:-$repo/target}/experiments/${name%.sh}
declare -F own_option >/dev/null || own_option() { return 1; }
seed=1 requests=()
usage() { echo "usage: $name $options" >&2; exit 2; }
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || usage
  case $options:$1 in
    *--requests*:--requests) requests=(--requests "$2") ;;
    *:--seed) seed=$2 ;;
    *:--out) out=$2 ;;
    *) own_option "$1" "$2" || usage ;;
  esac
  shift 2
done
command -v "$elastripe" >/dev/null || { echo "$name: no $elastripe (make build)" >&2; exit 1; }
mkdir -p "$out"
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
trap 'exit 130' INT TERM
