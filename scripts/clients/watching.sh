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
  promtool check rules "$repo/contrib/prometheus/elastripe.rules.yml" || fail "the alert rules"
  make_array eplog 64MiB
  local target=127.0.0.1:$((20000 + RANDOM % 10000))
  prometheus=127.0.0.1:$((30000 + RANDOM % 10000))
  start_server --metrics "$target"
  # It reads the older format, in which a counter's help has its whole name; the rest of its complaints count.
  curl -s "http://$target/metrics" >"$work/metrics" && tail -n 1 "$work/metrics" | grep -q '^# EOF' || fail "no metrics"
  promtool check metrics <"$work/metrics" 2>&1 | grep -v '_total no help text$' && fail "promtool complains of the metrics"
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

# The page in a browser: what is on it while a member goes and comes back, and when the server is gone. Pictures are in the
# directory PICTURES, if that is given.
test_page() {
  local tool look="$repo/scripts/clients/browser.py"
  for tool in chromium python3; do command -v $tool >/dev/null || skip "no $tool (apt-get install chromium python3)"; done
  make_array eplog 64MiB
  local target=127.0.0.1:$((20000 + RANDOM % 10000)) pictures=${PICTURES:-$work}
  start_server --metrics "$target" --rebuild-rate 1MiB/s
  fio --name=fill --ioengine=nbd --uri="$uri" --rw=write --bs=256k --size=64m --output="$work/fio.log" || fail "fio"
  "$look" "http://$target/" 'until:document.body.dataset.link == "live" && document.body.dataset.state == "healthy"' \
    'until:document.querySelectorAll(".bay[data-state=healthy]").length == 10' "shot:$pictures/healthy.png" \
    'press:Tab' 'until:document.activeElement.className == "skip"' 'press:Tab' 'until:document.activeElement.id == "hold"' \
    'press:Space' 'until:document.body.dataset.link == "held"' 'press:Space' 'until:document.body.dataset.link == "live"' \
    "run:'$elastripe' fail '${members[0]}' --device data1 --yes" \
    'until:document.body.dataset.state == "degraded"' 'until:document.title.startsWith("DEGRADED")' \
    'until:document.querySelectorAll(".bay[data-state=failed]").length == 1' \
    'until:document.getElementById("said").textContent.includes("The array is degraded")' \
    'until:document.getElementById("action").innerText.includes("elastripe replace")' \
    "run:'$elastripe' replace '${members[0]}' --device data1 --with '$work/members/new' --file-size 64MiB" \
    'until:document.querySelectorAll(".bay[data-state=rebuilding]").length == 1' \
    'until:document.querySelector("#work-bar").getAttribute("aria-valuenow") > 0' "shot:$pictures/rebuilding.png" \
    "run:'$elastripe' rate '${members[0]}' --rate off" 'until:document.body.dataset.state == "healthy"' \
    'until:document.getElementById("events").innerText.includes("data1 is rebuilt")' \
    "run:'$elastripe' rate '${members[0]}' --rate 1MiB/s" \
    "run:'$elastripe' replace '${members[0]}' --device data2 --with '$work/members/next' --file-size 64MiB" \
    'until:[...document.querySelectorAll(".bay .word")].some((word) => word.innerText.includes("being replaced"))' \
    'until:document.body.dataset.state == "healthy"' "shot:$pictures/replacing.png" \
    "run:'$elastripe' rate '${members[0]}' --rate off" "run:'$elastripe' wait '${members[0]}'" \
    "run:kill -STOP $server" 'until:document.body.dataset.link == "lost"' \
    'until:document.getElementById("state-word").innerText.startsWith("Was HEALTHY at")' "shot:$pictures/lost.png" \
    "run:kill -CONT $server" 'until:document.body.dataset.link == "live"' || fail "the page does not show what is so"
  "$look" --phone --size 360x740 --scheme dark "http://$target/" 'until:document.body.dataset.link == "live"' 'wait:2' \
    "shot:$pictures/phone.png" 'until:document.documentElement.scrollWidth == 360' tree >"$work/tree" ||
    fail "the page is wider than a phone"
  # What a screen reader is told.
  for words in 'heading.*HEALTHY' 'list.*8 SSDs (6 + 2)' 'list.*2 log devices'; do
    grep -q "$words" "$work/tree" || fail "nothing like '$words' in the accessibility tree: $(cat "$work/tree")"
  done
  stop_server
  page_of_many "$look" "$target" "$pictures"
}

# page_of_many BROWSER ADDRESS PICTURES: thirty members, on a screen and on a phone, one of them failed.
page_of_many() {
  local look=$1 target=$2 pictures=$3 i
  members=()
  for i in $(seq 0 27); do members+=("$work/members/many$i"); done
  timeout 300 "$elastripe" create --scheme eplog --parity 4 --file-size 16MiB --data "${members[@]}" \
    --log "$work"/members/manylog{0,1,2,3} >/dev/null
  members+=("$work"/members/manylog{0,1,2,3})
  start_server --metrics "$target"
  "$look" "http://$target/" 'until:document.querySelectorAll(".bay[data-state=healthy]").length == 32' \
    "run:'$elastripe' fail '${members[0]}' --device data17 --yes" \
    'until:document.querySelectorAll(".bay[data-state=failed]").length == 1' "shot:$pictures/many.png" \
    'until:document.documentElement.scrollWidth <= innerWidth' || fail "a page of 32 members"
  "$look" --phone --size 360x740 "http://$target/" 'until:document.querySelectorAll(".bay[data-state=failed]").length == 1' \
    "shot:$pictures/many-phone.png" 'until:document.documentElement.scrollWidth == 360' || fail "32 members are wider than a phone"
  stop_server
}
