# Clients of Redis on `kv serve`: redis-cli beside redis-server, redis-benchmark, python's `redis`, go-ycsb, crashes. Sourced,
# not run.

# start_keys [OPTION...]: serves the keys on `members` at $work/keys and waits until it answers; sets `server`.
start_keys() {
  "$elastripe" kv serve "${members[@]}" --resp "unix:$work/keys" "$@" </dev/null >>"$work/server.log" 2>&1 &
  server=$!
  note "process $server"
  local until=$((SECONDS + 60))
  until [ "$(timeout 5 redis-cli -s "$work/keys" ping 2>/dev/null)" = PONG ]; do
    ours "$server" || fail "the server ended: $(tail -n 3 "$work/server.log")"
    [ $SECONDS -lt $until ] || fail "the server does not answer after 60 s: $(tail -n 3 "$work/server.log")"
    sleep 0.05
  done
}

need_redis() {
  local tool
  for tool in redis-server redis-cli redis-benchmark; do command -v $tool >/dev/null || skip "no $tool (apt-get install redis-server)"; done
}

# What both say to the same commands; no answer depends on the time or on who serves.
conversation() {
  cat <<'END'
set a 1
get a
set a 2 nx
set a 2 xx get
set a 3 ex 100 keepttl
set a 3 px 0
set a 3 ex 100
ttl a
persist a
ttl a
ttl none
expire a 100 nx
expire a 50 gt
expire a 50 lt
expire a 50 nx xx
expire a 10 xy
ttl a
getex a persist
getex a ex
getdel a
getdel a
setnx a hello
getset a hello-again
getrange a 0 3
getrange a -5 -1
getrange none 0 -1
substr a 1 2
strlen a
append a !
incr a
incr n
incrby n 10
decr n
decrby n 20
incrby n x
mset x 1 y 2 z 3
mset x 1 y
mget x none z
exists x x none
touch x
type x
type none
unlink x y
del z none
dbsize
keys n*
scan 0 match nothing* count 1000
scan x
expireat n 4000000000
expiretime n
pexpireat n 4000000000000
pexpiretime n
setex s 100 v
psetex s 100000 v
setex s 0 v
echo hello
ping there
select 0
client getname
client setname me
client getname
config get maxmemory-policy
command getkeys mset a 1 b 2
get
get a b
set
flushall
dbsize
END
}

test_redis() {
  need_redis
  make_array "$1" 128MiB
  start_keys --create --sync flush
  mkdir -p "$work/redis"
  redis-server --port 0 --unixsocket "$work/redis/socket" --save '' --dir "$work/redis" </dev/null >"$work/redis.log" 2>&1 &
  note "process $!"
  soon 10 redis-cli -s "$work/redis/socket" ping || fail "redis-server does not answer"
  local version
  for version in -2 -3; do
    conversation | redis-cli --no-raw $version -s "$work/redis/socket" >"$work/theirs" 2>&1
    conversation | redis-cli --no-raw $version -s "$work/keys" >"$work/ours" 2>&1
    diff "$work/theirs" "$work/ours" || fail "answers differ from those of redis-server (RESP$version)"
  done
  head -c 5000000 /dev/urandom >"$work/large"
  redis-cli -s "$work/keys" -x set large <"$work/large" >/dev/null
  redis-cli -s "$work/keys" get large | head -c 5000000 | cmp - "$work/large" || fail "a large value came back changed"
  redis-cli -s "$work/keys" del large >/dev/null
  redis-benchmark -s "$work/keys" -t ping,set,get,incr,mset -n 20000 -r 2000 -d 300 -P 16 -q >"$work/benchmark" 2>&1 || fail "redis-benchmark"
  ! grep -i error "$work/benchmark" || fail "redis-benchmark had errors"
  stop_server
}

# Everything acknowledged under load is there after each SIGKILL.
test_redis_crash() {
  need_redis
  make_array "$1" 128MiB
  start_keys --create
  local round number writer
  for round in $(seq "$crashes"); do
    # Each line of the answers is one acknowledged set; what was under way at the kill may be there or not.
    (for number in $(seq 100000); do echo "set key$number $round-$number"; done) | redis-cli -s "$work/keys" >"$work/acknowledged" 2>/dev/null &
    writer=$!
    note "process $writer"
    sleep 2
    kill_server
    wait "$writer" 2>/dev/null || true
    start_keys
    number=$(grep -c '^OK' "$work/acknowledged" || true)
    [ "$number" -gt 0 ] || fail "nothing was acknowledged in 2 s"
    seq "$number" | sed 's/^/get key/' | redis-cli -s "$work/keys" >"$work/found"
    seq "$number" | sed "s/^/$round-/" | diff -q - "$work/found" >/dev/null || fail "of $number acknowledged keys some are not there, or are others"
    echo "$number keys outlived crash $round"
  done
  stop_server
}

# every_key FILE: all keys and their values, in order.
every_key() {
  redis-cli -s "$work/keys" --scan | sort >"$work/names"
  sed 's/^/get /' "$work/names" | redis-cli -s "$work/keys" | paste "$work/names" - >"$1"
}

# outlives_a_kill: what is there now is there when the server was killed and is back.
outlives_a_kill() {
  every_key "$work/before"
  kill_server
  start_keys
  every_key "$work/after"
  [ -s "$work/before" ] || fail "there are no keys"
  cmp "$work/before" "$work/after" || fail "after SIGKILL keys or values differ"
  echo "$(wc -l <"$work/before") keys are as they were before SIGKILL"
}

need_python_redis() {
  python=${PYTHON:-python3}
  "$python" -c 'import redis' 2>/dev/null ||
    skip "$python has no module redis (python3 -m venv DIR; DIR/bin/pip install redis; PYTHON=DIR/bin/python3)"
}

test_python_redis() {
  need_redis
  need_python_redis
  make_array "$1" 256MiB
  start_keys --create
  local program=$repo/scripts/clients/redis_client.py round writer
  timeout 120 "$python" "$program" talk "$work/keys" || fail "an answer is not that of Redis"
  redis-cli -s "$work/keys" del large >/dev/null
  outlives_a_kill
  redis-cli -s "$work/keys" flushall >/dev/null
  for round in $(seq "$crashes"); do
    # Each round has a ledger of its own: what the last one left is looked at before.
    "$python" "$program" write "$work/keys" "$work/ledger" >"$work/writer" 2>&1 &
    writer=$!
    note "process $writer"
    sleep 2
    kill_server
    wait "$writer" || fail "the writer: $(tail -n 3 "$work/writer")"
    start_keys
    timeout 120 "$python" "$program" check "$work/keys" "$work/ledger" || fail "after SIGKILL $round of $crashes"
    redis-cli -s "$work/keys" flushall >/dev/null
    rm "$work/ledger"
  done
  stop_server
}

# go-ycsb's binding for Redis, with strings. It has no scans, so of workload E only the insertions happen.
test_ycsb() {
  need_redis
  local ycsb=${GO_YCSB:-go-ycsb} workload options inserted
  command -v "$ycsb" >/dev/null ||
    skip "no go-ycsb (in the source of the Go module github.com/pingcap/go-ycsb: go build ./cmd/go-ycsb; GO_YCSB=FILE)"
  make_array "$1" 256MiB
  start_keys --create
  options=(-p "redis.network=unix" -p "redis.addr=$work/keys" -p redis.datatype=string -p recordcount=1000 -p operationcount=3000
    -p fieldlength=100 -p threadcount=8)
  for workload in a b c d e f; do
    redis-cli -s "$work/keys" flushall >/dev/null
    redis-cli -s "$work/keys" config resetstat >/dev/null
    # shellcheck disable=SC2046  # words of their own
    timeout 120 "$ycsb" load redis "${options[@]}" $(ycsb_shares $workload) >"$work/load" 2>&1 || fail "loading for workload $workload"
    [ "$(redis-cli -s "$work/keys" dbsize)" = 1000 ] || fail "workload $workload: $(redis-cli -s "$work/keys" dbsize) of 1000 are loaded"
    # shellcheck disable=SC2046  # words of their own
    timeout 120 "$ycsb" run redis "${options[@]}" $(ycsb_shares $workload) >"$work/ran" 2>&1 || fail "workload $workload"
    ycsb_went_well || fail "workload $workload had errors"
    grep -E '^TOTAL +- ' "$work/ran" | tail -n 1 | sed "s/^/workload $workload: /"
    inserted=$( (grep -E '^INSERT +- ' "$work/ran" || true) | tail -n 1 | sed -n 's/.*Count: \([0-9]*\),.*/\1/p')
    [ "$(redis-cli -s "$work/keys" dbsize)" = $((1000 + ${inserted:-0})) ] || fail "workload $workload: not all insertions are there"
    outlives_a_kill
  done
  stop_server
}

# ycsb_went_well: now and then go-ycsb asks for the key behind the last one (of redis-server, too), and calls it an error that it is
# not there. There are no others, and none that the server knows of.
ycsb_went_well() {
  local missed
  missed=$(redis-cli -s "$work/keys" info stats | tr -d '\r' | sed -n 's/^keyspace_misses://p')
  (grep -E '^(READ|UPDATE|INSERT|READ_MODIFY_WRITE)_ERROR' "$work/ran" || true) | tac | sort -u -k1,1 | sed 's/.*Count: //' | tr -d ',' |
    awk -v missed="$missed" '{ errors += $1 } END { exit errors > missed }' &&
    ! grep -q '^INSERT_ERROR' "$work/ran" && ! redis-cli -s "$work/keys" info commandstats | grep -E '(rejected|failed)_calls=[1-9]'
}

# ycsb_shares WORKLOAD: the options that make it what YCSB calls so.
ycsb_shares() {
  local read=0 update=0 insert=0 scan=0 change=0 keys=zipfian share
  case $1 in
    a) read=0.5 update=0.5 ;;
    b) read=0.95 update=0.05 ;;
    c) read=1 ;;
    d) read=0.95 insert=0.05 keys=latest ;;
    e) scan=0.95 insert=0.05 ;;
    f) read=0.5 change=0.5 ;;
  esac
  for share in workload=core "readproportion=$read" "updateproportion=$update" "insertproportion=$insert" "scanproportion=$scan" \
    "readmodifywriteproportion=$change" "requestdistribution=$keys"; do
    echo "-p $share"
  done
}
