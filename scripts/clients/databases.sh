# Databases without their own protection from torn pages, on ext4 with clusters of 16 KiB, while the server is killed.
#
# A page that is written in one request is whole afterwards, old or new (docs/crash-model.md, "Untorn writes"): MariaDB with
# innodb_doublewrite=0 and O_DIRECT, pages of 16 KiB; PostgreSQL with full_page_writes=off, pages of 8 KiB. After each crash every page's
# checksum is verified before the database sees it (MariaDB) or after its recovery (PostgreSQL), and every commit that was
# answered is there.

need_database() {
  need_bridge
  need_file_system ext4
  local tool
  for tool in "$@"; do [ -x "$tool" ] || command -v "$tool" >/dev/null || skip "$tool is not installed"; done
}

# Clusters keep a page in one piece on the disk.
make_clustered_fs() { timeout 300 mkfs.ext4 -q -F -O bigalloc -C 16384 "$disk"; }

# The server dies first, then the database on it, which sees errors only.
crash_with() {
  kill_server
  local pid
  for pid in "$@"; do end_process "$pid" KILL; done
  drop_mount "$mnt"
  bridge_down
}

serve_again() {
  start_server
  bridge_up
  mount_fs ext4
}

# test_mariadb SCHEME
test_mariadb() {
  need_database mariadbd mariadb mariadb-install-db innochecksum
  local seed=${SEED:-$(date +%s)} round
  RANDOM=$seed
  echo "seed $seed, $crashes crashes"
  make_array "$1" 192MiB
  start_server
  bridge_up
  make_clustered_fs
  mount_fs ext4
  mkdir "$mnt/db"
  mariadb-install-db --no-defaults --datadir="$mnt/db" --user=root --auth-root-authentication-method=normal --skip-test-db \
    >"$work/install.log" 2>&1 || { tail -n 5 "$work/install.log"; fail "mariadb-install-db"; }
  start_mariadb
  sql <<<"CREATE DATABASE b; CREATE TABLE b.t (id INT PRIMARY KEY AUTO_INCREMENT, v INT DEFAULT 0, pad CHAR(200) DEFAULT 'x');
    INSERT INTO b.t (v) VALUES (0); $(yes 'INSERT INTO b.t (v) SELECT v FROM b.t;' | head -n 16)
    CREATE TABLE b.c (id INT PRIMARY KEY, n INT); INSERT INTO b.c VALUES (1, 0), (2, 0), (3, 0), (4, 0);"
  for round in $(seq "$crashes"); do
    mariadb_crash
    start_mariadb
    echo "-- crash $round: $(verify_mariadb)"
  done
  stop_mariadb
  unmount_fs
  bridge_down
  stop_server
  scrub
}

start_mariadb() {
  # In its own directory, so that it is known as the test's.
  mariadbd --no-defaults --datadir="$mnt/db" --socket="$work/db.sock" --pid-file="$work/db.pid" --skip-networking --user=root \
    --innodb-doublewrite=0 --innodb-flush-method=O_DIRECT --innodb-buffer-pool-size=8M --innodb-log-file-size=16M \
    --innodb-flush-log-at-trx-commit=1 --innodb-io-capacity=20000 --innodb-max-dirty-pages-pct-lwm=0.001 \
    </dev/null >>"$work/mariadb.log" 2>&1 &
  database=$!
  note "process $database"
  local until=$((SECONDS + 60))
  until sql <<<"SELECT 1" >/dev/null 2>&1; do
    ours "$database" || fail "MariaDB ended: $(grep -a ERROR "$work/mariadb.log" | tail -n 5)"
    [ $SECONDS -lt $until ] || fail "MariaDB does not answer after 60 s: $(tail -n 5 "$work/mariadb.log")"
    sleep 0.1
  done
}
stop_mariadb() {
  timeout 60 mariadb-admin --no-defaults -S "$work/db.sock" -u root shutdown >/dev/null
  soon 30 gone "$database" || fail "MariaDB did not stop"
  wait "$database" || true
}
sql() { timeout -k 1 60 mariadb --no-defaults -S "$work/db.sock" -u root -N -B --unbuffered "$@"; }

# Four writers at random rows, four that count their commits; SIGKILL at a random moment.
mariadb_crash() {
  local writer
  for writer in 1 2 3 4; do
    yes "SET @i = FLOOR(1 + RAND() * 65536); UPDATE b.t SET v = v + 1, pad = REPEAT(CHAR(65 + FLOOR(RAND() * 26)), 200) WHERE id = @i;" |
      sql >/dev/null 2>&1 &
    yes "UPDATE b.c SET n = n + 1 WHERE id = $writer; SELECT n FROM b.c WHERE id = $writer;" | sql >"$work/count$writer" 2>/dev/null &
  done
  pause 1500 4000
  crash_with "$database"
  wait $(jobs -p) 2>/dev/null || true
  serve_again
  local file
  while read -r file; do
    innochecksum "$file" >"$work/innochecksum" 2>&1 ||
      { tail -n 5 "$work/innochecksum"; fail "$file has a page that is torn"; }
  done < <(find "$mnt/db" -name '*.ibd' -size +0; echo "$mnt/db/ibdata1")
}

verify_mariadb() {
  local writer told found
  sql <<<"CHECK TABLE b.t, b.c" | grep -v 'status.OK' && fail "a table is damaged"
  for writer in 1 2 3 4; do
    told=$(grep -x '[0-9]*' "$work/count$writer" | tail -n 1)
    found=$(sql <<<"SELECT n FROM b.c WHERE id = $writer")
    [ "${told:-0}" -le "$found" ] || fail "writer $writer was told of commit $told, and $found are there"
    printf '%s of %s ' "$found" "${told:-0}"
  done
  echo "commits, $(sql <<<"SELECT SUM(v) FROM b.t") updates"
}

# test_postgres SCHEME
test_postgres() {
  local bin
  bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
  [ -n "$bin" ] || skip "PostgreSQL is not installed"
  need_database "$bin/postgres" "$bin/pgbench" "$bin/pg_checksums"
  id postgres >/dev/null 2>&1 || skip "no user postgres"
  local seed=${SEED:-$(date +%s)} round
  RANDOM=$seed
  echo "seed $seed, $crashes crashes"
  chmod 755 "$work"
  make_array "$1" 192MiB
  start_server
  bridge_up
  make_clustered_fs
  mount_fs ext4
  install -d -o postgres "$mnt/db" "$work/pg"
  as_postgres "$bin/initdb" -D "$mnt/db" --data-checksums >"$work/install.log" 2>&1 || { tail -n 5 "$work/install.log"; fail initdb; }
  start_postgres
  as_postgres "$bin/pgbench" -h "$work/pg" -i -s 4 -q postgres >>"$work/install.log" 2>&1 || fail "pgbench -i"
  for round in $(seq "$crashes"); do
    as_postgres timeout -k 1 60 "$bin/pgbench" -h "$work/pg" -n -c 8 -j 2 -T 50 postgres >"$work/pgbench.log" 2>&1 &
    pause 1500 4000
    crash_with "$database"
    wait $(jobs -p) 2>/dev/null || true
    serve_again
    start_postgres
    verify_postgres "$round"
    start_postgres
  done
  stop_postgres
  unmount_fs
  bridge_down
  stop_server
  scrub
}

as_postgres() { (cd "$work/pg" && exec runuser -u postgres -- "$@"); }

start_postgres() {
  rm -f "$mnt/db/postmaster.pid"
  as_postgres "$bin/postgres" -D "$mnt/db" -k "$work/pg" -c listen_addresses= -c full_page_writes=off -c shared_buffers=16MB \
    -c checkpoint_timeout=30s -c max_wal_size=64MB -c bgwriter_delay=10ms -c backend_flush_after=1 \
    </dev/null >>"$work/postgres.log" 2>&1 &
  database=$!
  note "process $database"
  local until=$((SECONDS + 60))
  until as_postgres "$bin/pg_isready" -q -h "$work/pg"; do
    ours "$database" || fail "PostgreSQL ended: $(grep -aE 'FATAL|PANIC|ERROR' "$work/postgres.log" | tail -n 5)"
    [ $SECONDS -lt $until ] || fail "PostgreSQL does not answer after 60 s"
    sleep 0.1
  done
}
stop_postgres() {
  as_postgres "$bin/pg_ctl" -D "$mnt/db" -m fast -w stop >/dev/null || fail "PostgreSQL did not stop"
  wait "$database" 2>/dev/null || true
}

# What recovery made of the pages: checksums of all, and the balance that each transaction keeps in three tables.
verify_postgres() {
  local sums
  sums=$(as_postgres "$bin/psql" -h "$work/pg" -At postgres -c "SELECT (SELECT SUM(abalance) FROM pgbench_accounts),
    (SELECT SUM(tbalance) FROM pgbench_tellers), (SELECT SUM(bbalance) FROM pgbench_branches), (SELECT SUM(delta) FROM pgbench_history)")
  local accounts rest
  IFS='|' read -r accounts rest <<<"$sums"
  [ "$rest" = "$accounts|$accounts|$accounts" ] || fail "sums differ: $sums"
  as_postgres "$bin/pg_amcheck" -h "$work/pg" --install-missing -d postgres >"$work/amcheck" 2>&1 || { tail -n 5 "$work/amcheck"; fail pg_amcheck; }
  stop_postgres
  as_postgres "$bin/pg_checksums" --check -D "$mnt/db" >"$work/checksums" 2>&1 || { tail -n 5 "$work/checksums"; fail "a page is torn"; }
  echo "-- crash $1: $(grep -E 'Blocks scanned' "$work/checksums"), sums $sums"
}
