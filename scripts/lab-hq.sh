#!/usr/bin/env bash
# Holds a run of experiments on HyperQueue against the same run in one process: the reports must be the same to the
# byte. The wheel `hyperqueue` from PyPI goes into a virtual environment of its own; it has server and workers in one
# process of Python, and no worker that could be killed by itself, so tasks of the two are killed on the way. With
# the program `hq` of HyperQueue (HQ=PROGRAM; the wheel of the same version is taken then) server and workers are
# processes of their own, and one of the two workers is killed.
#
#   [HQ=hq] scripts/lab-hq.sh target/release/elastripe [FOLDER]
set -euo pipefail

program=$(realpath "${1:?the program elastripe}")
folder=${2:-$(mktemp -d)}
mkdir -p "$folder"
folder=$(realpath "$folder")
cells=(X-16 X-23 --scale 0.0005 --seed 1)

if [ ! -x "$folder/venv/bin/python" ]; then
    python3 -m venv "$folder/venv"
    "$folder/venv/bin/pip" install --quiet "hyperqueue${HQ:+==$("$HQ" --version | grep -Eo '[0-9]+(\.[0-9]+)+')}"
fi
python=$folder/venv/bin/python

cat > "$folder/cluster.py" <<'PYTHON'
"""A server with two workers of one core each, until the standard input ends."""
import sys
from hyperqueue.cluster import LocalCluster, WorkerConfig

with LocalCluster(server_dir=sys.argv[1]) as cluster:
    for _ in range(2):
        cluster.start_worker(WorkerConfig(cores=1))
    print("up", flush=True)
    sys.stdin.read()
PYTHON

rm -rf "$folder/hq" "$folder/local" "$folder/server" "$folder/pipe"
mkdir "$folder/server"
pids=()
if [ -n "${HQ:-}" ]; then
    "$HQ" --server-dir "$folder/server" server start > "$folder/server.log" 2>&1 &
    pids+=($!)
    for _ in $(seq 100); do
        "$HQ" --server-dir "$folder/server" server info > /dev/null 2>&1 && break
        kill -0 "${pids[0]}" || { cat "$folder/server.log"; exit 1; }
        sleep 0.1
    done
    for worker in 1 2; do
        "$HQ" --server-dir "$folder/server" worker start --cpus 1 > "$folder/worker-$worker.log" 2>&1 &
        pids+=($!)
    done
    trap 'kill "${pids[@]}" 2> /dev/null || true; wait' EXIT
else
    mkfifo "$folder/pipe"
    "$python" "$folder/cluster.py" "$folder/server" < "$folder/pipe" > "$folder/cluster.log" 2>&1 &
    cluster=$!
    exec 9> "$folder/pipe"
    trap 'exec 9>&-; wait "$cluster" || true' EXIT
    for _ in $(seq 100); do
        grep -q up "$folder/cluster.log" && break
        kill -0 "$cluster" || { cat "$folder/cluster.log"; exit 1; }
        sleep 0.1
    done
fi

# A worker, if workers are processes, else five tasks; one each time that twenty more cells are done.
kill_one() {
    if [ -z "${HQ:-}" ]; then
        task=$(pgrep -P "$cluster" | head -1 || true)
        [ "$killed" -lt 5 ] && [ -n "$task" ] && kill -KILL "$task" 2> /dev/null
    else
        [ "$killed" -lt 1 ] && kill -KILL "${pids[2]}"
    fi
}

echo "== on HyperQueue"
began=$(date +%s.%N)
"$program" lab run "${cells[@]}" --out "$folder/hq" --executor hq --hq-server "$folder/server" --python "$python" \
    > "$folder/hq.log" 2>&1 &
run=$!
killed=0
for _ in $(seq 2000); do
    kill -0 "$run" 2> /dev/null || break
    if [ "$(find "$folder/hq/cells" -name '*.json' 2> /dev/null | wc -l)" -ge $((20 * (killed + 1))) ]; then
        if kill_one; then killed=$((killed + 1)); fi
    fi
    sleep 0.05
done
[ "$killed" -gt 0 ] || { echo "nothing was killed"; exit 1; }
wait "$run" || { tail -20 "$folder/hq.log"; exit 1; }
ended=$(date +%s.%N)
tail -1 "$folder/hq.log"
what=tasks
[ -z "${HQ:-}" ] || what=workers
echo "$what killed: $killed; $(awk -v a="$began" -v b="$ended" 'BEGIN { printf "%.1f s", b - a }')"

echo "== in one process, two threads"
began=$(date +%s.%N)
"$program" lab run "${cells[@]}" --out "$folder/local" --jobs 2 2> /dev/null
ended=$(date +%s.%N)
awk -v a="$began" -v b="$ended" 'BEGIN { printf "%.1f s\n", b - a }'

for which in hq local; do "$program" lab report --out "$folder/$which" > /dev/null; done
for file in report.html report.json headlines.csv cells.csv; do cmp "$folder/hq/$file" "$folder/local/$file"; done
echo "the reports of $(find "$folder/hq/cells" -name '*.json' | wc -l) cells are the same to the byte"
