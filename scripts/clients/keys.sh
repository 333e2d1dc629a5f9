# Clients of Redis on `kv serve`: redis-cli beside redis-server, redis-benchmark, a crash. Sourced, not run.

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
