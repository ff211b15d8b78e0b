#!/usr/bin/env bash
# Checks deploy/prometheus and deploy/grafana with the real Prometheus. The rules must be valid, and each alert must
# fire on its own fault only. Each query of the board must give numbers while a live daemon trains a job.
cd "$(dirname "$0")"
source ./daemon.bash

command -v promtool >/dev/null && command -v prometheus >/dev/null || die "prometheus is missing; run deploy/setup.sh --test"
rules=$here/../../deploy/prometheus
board=$here/../../deploy/grafana/tandem.json

echo "-- configuration, rules and alerts"
expect_code 0 "$scratch/out" promtool check config "$rules/prometheus.yml"
expect_code 0 "$scratch/out" promtool check rules "$rules/recording.yml" "$rules/alerts.yml"
expect_code 0 "$scratch/out" promtool test rules "$rules/alerts_test.yml"
while read -r alert; do
  grep -q "alertname: $alert\$" "$rules/alerts_test.yml" || die "alerts_test.yml never lets $alert fire"
done < <(sed -n 's/^ *- alert: //p' "$rules/alerts.yml")

echo "-- the example scrapes a daemon"
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --reference-devices 0 --metrics-listen 127.0.0.1:0
metrics=$(metrics_address)

# The panels for GPUs need series that a machine without GPUs lacks: a second target serves samples of them.
python3 - "$scratch/gpu_port" "$board" <<'END' &
import http.server, os, re, sys
names = sorted(set(re.findall(r"tandem_gpu_\w+", open(sys.argv[2]).read())))
page = "".join(f'{name}{{device="gpu:0"}} 1\n' for name in names).encode()
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.end_headers()
        self.wfile.write(page)
    def log_message(self, *arguments):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(server.server_port))
os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
END
disown
await 60 test -s "$scratch/gpu_port" || die "the target of GPU samples did not start"

cp "$rules"/*.yml "$scratch/"
sed -i "s/15s/1s/; s/\"127.0.0.1:7448\"/\"$metrics\", \"127.0.0.1:$(<"$scratch/gpu_port")\"/" "$scratch/prometheus.yml"
prometheus --config.file "$scratch/prometheus.yml" --storage.tsdb.path "$scratch/tsdb" \
  --web.listen-address 127.0.0.1:0 >"$scratch/prometheus.log" 2>&1 &
disown
listens() { port=$(sed -n 's/.*msg="Listening on" address=127\.0\.0\.1://p' "$scratch/prometheus.log") && [[ -n $port ]]; }
await 60 listens || {
  tail "$scratch/prometheus.log" >&2
  die "Prometheus does not listen"
}

cat >"$scratch/ask.py" <<'END'
"""Asks Prometheus: `ask.py PORT up` or `ask.py PORT BOARD`. Ends with 1 if a query gives no number, and names the query."""
import json, math, re, sys, urllib.parse, urllib.request

port, wanted = sys.argv[1:]

def numbers(query):
    url = f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": query})
    with urllib.request.urlopen(url, timeout=60) as answer:
        series = json.load(answer)["data"]["result"]
    return [value for value in (float(one["value"][1]) for one in series) if not math.isnan(value)]

if wanted == "up":
    sys.exit(0 if numbers('up{job="tandem"}') == [1, 1] and numbers("tandem_ready") == [1] else 1)
panels = json.load(open(wanted))["panels"]
queries = [(panel["title"], target["expr"]) for panel in panels for target in panel["targets"]]
assert len(queries) >= len(panels) > 0
silent = [f"{title}: {query}" for title, query in queries if not numbers(query.replace("$instance", ".+"))]
print("\n".join(silent) if silent else f"{len(queries)} queries of {len(panels)} panels gave numbers")
sys.exit(1 if silent else 0)
END
await 120 python3 "$scratch/ask.py" "$port" up 2>/dev/null || {
  tail "$scratch/prometheus.log" >&2
  die "Prometheus does not scrape the daemon"
}

echo "-- each panel's query has an answer"
"$tandem" init synthetic >"$scratch/job.yaml"
"$tandem" submit "$scratch/job.yaml" --set training.epochs=100000 --set training.report.every_seconds=0.2 >"$scratch/out"
every_panel() {
  "$tandem" list >/dev/null && # rates of calls need calls
    python3 "$scratch/ask.py" "$port" "$board" >"$scratch/panels" 2>&1
}
await 120 every_panel || {
  cat "$scratch/panels" >&2
  die "a panel's query gives no number"
}
cat "$scratch/panels"
