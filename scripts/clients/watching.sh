# Whoever watches an array: Prometheus with the alert rules of contrib. Sourced, not run.

# metric_is SERIES VALUE: Prometheus has scraped it.
metric_is() {
  curl -sfG "http://$prometheus/api/v1/query" --data-urlencode "query=$1" | grep -q "\"value\":\[[0-9.]*,\"$2\"\]"
}
# fires ALERT: it is firing.
fires() { curl -sf "http://$prometheus/api/v1/alerts" | tr '{' '\n' | grep -A3 "\"alertname\":\"$1\"" | grep -q '"state":"firing"'; }

# Scraped, and an alert fires when a member goes and falls silent when another has taken its place.
test_prometheus() {
  local tool
  for tool in prometheus promtool curl; do command -v $tool >/dev/null || skip "no $tool (apt-get install prometheus curl)"; done
  promtool test rules "$repo/contrib/prometheus/elastripe.test.yml" || fail "the alert rules"
  make_array eplog 64MiB
  local target=127.0.0.1:$((20000 + RANDOM % 10000))
  prometheus=127.0.0.1:$((30000 + RANDOM % 10000))
  start_server --metrics "$target"
  cat >"$work/prometheus.yml" <<END
global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}
rule_files: ["$repo/contrib/prometheus/elastripe.rules.yml"]
scrape_configs: [{job_name: elastripe, static_configs: [{targets: ["$target"]}]}]
END
  prometheus --config.file="$work/prometheus.yml" --storage.tsdb.path="$work/prometheus" --web.listen-address="$prometheus" \
    </dev/null >"$work/prometheus.log" 2>&1 &
  note "process $!"
  soon 30 metric_is 'elastripe_state{state="healthy"}' 1 || fail "nothing was scraped: $(tail -n 3 "$work/prometheus.log")"
  metric_is elastripe_devices_required 10 || fail "ten devices are required"
  soon 10 fires ElastripeDegraded && fail "an alert fires although all is well"
  "$elastripe" fail "${members[0]}" --device data1 --yes
  soon 15 fires ElastripeDegraded || fail "no alert fires although a member failed"
  "$elastripe" replace "${members[0]}" --device data1 --with "$work/members/new" --file-size 64MiB --wait
  soon 15 metric_is 'elastripe_state{state="healthy"}' 1 || fail "it is not seen to be healthy again"
  soon 15 eval '! fires ElastripeDegraded' || fail "the alert does not end"
  stop_server
}
