#!/usr/bin/env bash
# Tests the daemon's signals of life: metrics and health over HTTP, the service manager's socket and watchdog, `tandem
# doctor`, `tandemd --check`, and the reports of a crash of the daemon or a worker.
cd "$(dirname "$0")"
source ./daemon.bash

# The socket of systemd. Prints a line for each message, with '|' between the message's lines.
python3 - "$scratch/notify" >"$scratch/notified" <<'END' &
import socket, sys
listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
listener.bind(sys.argv[1])
while True:
    print(listener.recv(4096).decode().replace("\n", "|"), flush=True)
END
disown
await 180 test -S "$scratch/notify" || die "the socket of the service manager is not there"

# get PATH FILE: the page's body; the status is in $status.
get() {
  http_get "$metrics" "$1" >"$2.whole"
  status=$(head -n 1 "$2.whole" | cut -d ' ' -f 2)
  sed '1,/^\r$/d' "$2.whole" >"$2"
}
# value METRIC: as the last scrape had it.
value() { grep -v '^#' "$scratch/metrics" | grep -F -- "$1 " | sed 's/.* //'; }
scrape() { get /metrics "$scratch/metrics" && [[ $status == 200 ]]; }
is() { scrape && [[ $(value "$1") == "$2" ]]; }

echo "-- options are checked without a start"
expect_code 0 "$scratch/check" "$tandemd" --state-folder "$scratch/state" --listen 127.0.0.1:0 --check
expect_text 'tandemd could run with these options' "$scratch/check"
[[ ! -e $scratch/state ]] || die "--check made the state folder"
expect_code 1 "$scratch/check" "$tandemd" --state-folder "$scratch/state" --metrics-listen 0.0.0.0:0 --check
expect_text 'PROBLEM *--metrics-listen 0.0.0.0:0: cannot serve metrics' "$scratch/check"

echo "-- the service manager hears when it serves, and that it lives"
NOTIFY_SOCKET=$scratch/notify WATCHDOG_USEC=2000000 start_daemon --listen 127.0.0.1:0 --cpu-devices 1 \
  --reference-devices 0 --metrics-listen 127.0.0.1:0
await 180 grep -q '^READY=1|STATUS=serves on ' "$scratch/notified" || die "it never said that it is ready"
await 180 eval '(($(grep -c "^WATCHDOG=1" "$scratch/notified") >= 3))' || die "it does not feed the watchdog"
metrics=$(metrics_address)

echo "-- metrics and health"
scrape || die "no metrics: $status"
[[ $(value 'tandem_ready') == 1 ]] || die "tandem_ready is $(value tandem_ready)"
[[ $(value 'tandem_device_state{device="cpu:0",state="active"}') == 1 ]] || die "cpu:0 is not active"
get /healthz "$scratch/page" && [[ $status == 200 && $(<"$scratch/page") == ok ]] || die "healthz: $status $(<"$scratch/page")"
get /readyz "$scratch/page" && [[ $status == 200 && $(<"$scratch/page") == ok ]] || die "readyz: $status $(<"$scratch/page")"
get /etc/passwd "$scratch/page" && [[ $status == 404 ]] || die "a file was served"

echo "-- a job shows in them, and is gone from them when it has ended"
"$tandem" init synthetic >"$scratch/job.yaml"
"$tandem" submit "$scratch/job.yaml" --set max_restarts=0 --set training.epochs=100000 --set training.report.every_seconds=0.2 >"$scratch/submitted"
job=$(submitted "$scratch/submitted")
await 180 is 'tandem_jobs{state="running"}' 1 || die "the job does not run"
await 180 eval 'scrape && grep -q "^tandem_job_images_per_second{job=\"$job\"} [1-9]" "$scratch/metrics"' || die "no images a second"
[[ $(value 'tandem_job_queue_wait_seconds_count') == 1 ]] || die "its wait was not counted"
grep -q '^tandem_rpc_calls_total{code="OK",method="CreateJob"} 1$' "$scratch/metrics" || die "its call was not counted"

echo "-- every metric is in the table"
while read -r name; do
  grep -qF "| \`$name\` |" "$here/../../server/http/METRICS.md" || die "METRICS.md does not know $name"
done < <(sed -n 's/^# TYPE \([^ ]*\) .*/\1/p' "$scratch/metrics")

echo "-- the doctor finds nothing to mend"
expect_code 0 "$scratch/doctor" "$tandem" doctor
expect_text 'ok *limits' "$scratch/doctor"
expect_text 'ok *disk' "$scratch/doctor"
"$tandem" devices drain cpu:0 --reason 'for the test' >"$scratch/out"
expect_code 1 "$scratch/doctor" "$tandem" doctor --json
python3 - "$scratch/doctor" <<'END' || die "the doctor did not see that no device takes jobs"
import json, sys
report = json.load(open(sys.argv[1]))
assert report["problems"] == 1, report
assert any("no device takes jobs" in f["message"] for f in report["findings"]), report
END
"$tandem" devices resume cpu:0 >"$scratch/out"

echo "-- a worker's crash leaves its stack, and the job says where"
worker=$(pgrep -f "tandem-worker.*$scratch/state")
kill -SEGV "$worker"
await 180 is 'tandem_worker_losses_total' 1 || die "the loss was not counted"
await 180 test -s "$scratch/state/jobs/$job/crash-attempt-1.txt" || die "no crash report"
expect_text 'SIGSEGV received' "$scratch/state/jobs/$job/crash-attempt-1.txt"
"$tandem" describe "$job" -o json >"$scratch/described"
expect_text 'SIGSEGV' "$scratch/described"
expect_text 'crash-attempt-1\.txt' "$scratch/described"
! grep -q "job=\"$job\"" "$scratch/metrics" || die "its series are still there"

echo "-- so does the daemon's, which ends by its signal"
kill -SEGV "$daemon"
code=0
wait "$daemon" || code=$?
((code == 128 + 11)) || die "it ended with $code"
report=$(ls "$scratch"/state/crash-*.txt)
expect_text '^tandemd [0-9.]+, process' "$report"
expect_text 'SIGSEGV received' "$report"
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --metrics-listen 127.0.0.1:0
expect_text 'an earlier daemon crashed; its stack is in' "$scratch/tandemd.log"

echo "-- a daemon that is told to stop says so"
kill "$daemon" && wait "$daemon"
NOTIFY_SOCKET=$scratch/notify start_daemon --listen 127.0.0.1:0 --cpu-devices 1
kill "$daemon" && wait "$daemon"
await 180 grep -q '^STOPPING=1' "$scratch/notified" || die "it did not say that it stops"
