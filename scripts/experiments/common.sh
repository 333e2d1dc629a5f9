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
# What a run is compared with holds at full length: `short` is how long a shorter one is, for the tables.
short=${requests[1]:-}
# any FILE COLUMN [KEY=VALUE]: whether the column of a CSV file has something other than zeros, in the rows asked for.
any() {
  awk -F, -v column="$2" -v where="${3:-}" 'BEGIN { split(where, part, "=") }
    NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
    (where == "" || $at[part[1]] == part[2]) && $at[column] + 0 != 0 { found = 1; exit }
    END { exit !found }' "$1"
}
command -v "$elastripe" >/dev/null || { echo "$name: no $elastripe (make build)" >&2; exit 1; }
mkdir -p "$out"
traces=$(mktemp -d)
trap 'rm -rf "$traces"' EXIT
trap 'exit 130' INT TERM
