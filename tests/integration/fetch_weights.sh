#!/usr/bin/env bash
# Tests initial weights by URL. A job's model is served by a faulty web server, and other jobs start from it. Wrong URLs
# and files are refused by name. The weights of a waiting job outlast a restart of the daemon. Exit code 77: no Python.
cd "$(dirname "$0")"
source ./daemon.bash

command -v python3 >/dev/null || skip "python3 is not installed"
mkdir "$scratch/web" "$scratch/data"
python3 mishap_server.py "$scratch/web" "$scratch/port" &
await 180 test -s "$scratch/port" || die "the web server did not start"
web=http://127.0.0.1:$(<"$scratch/port")
requests() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end="")' "$web/log"; }

# job [LINE...]: a small job file with these lines.
job() {
  cat >"$scratch/job.yaml" <<'YAML'
name: by-url
dataset: {synthetic: {shape: [8], classes: 3, train_samples: 96}}
model:
  input: {shape: [8]}
  layers:
  - dense: {units: 8, activation: tanh}
  - dense: {units: 3}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: 32
  epochs: 2
YAML
  printf '%s\n' "$@" >>"$scratch/job.yaml"
}
# refused TEXT URL [FIELD]: expects that a job from this URL is refused. The message has the field and the text, and no
# secret of the URL.
refused() {
  job "initial_weights: {file: \"$2\"}"
  expect_code 2 "$scratch/refused" "$tandem" validate "$scratch/job.yaml"
  expect_text "${3:-initial_weights.file}" "$scratch/refused"
  expect_text "$1" "$scratch/refused"
  if grep -q "secret" "$scratch/refused"; then die "the refusal of $2 shows its query"; fi
  if grep -q "$scratch/state" "$scratch/refused"; then die "the refusal of $2 shows the cache"; fi
}

echo "By default the daemon does not connect to private addresses."
start_daemon --listen 127.0.0.1:0 --cpu-devices 1
refused "may not fetch from there" "$web/ok/model.safetensors?secret"
requests | grep -q . && die "the daemon asked the server all the same"
kill "$daemon"
wait "$daemon" || true

echo "A job starts from the model of another job, by URL."
allowed=(--listen 127.0.0.1:0 --cpu-devices 1 --data-folder "$scratch/data" --fetch-from 127.0.0.1 --fetch-from "s3://data")
export AWS_ENDPOINT_URL=$web/s3 AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY=a+secret/key
start_daemon "${allowed[@]}"
job
expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/job.yaml"
first=$(submitted "$scratch/out")
cp "$scratch/state/jobs/$first/model.safetensors" "$scratch/web"
digest=$(sha256sum "$scratch/web/model.safetensors" | cut -c 1-64)
url=$web/ok/model.safetensors
job "initial_weights: {file: \"$url\"}"
expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/job.yaml"
expect_text "begins with 4 tensors of $url#sha256=$digest" "$scratch/out"
second=$(submitted "$scratch/out")
expect_code 0 "$scratch/out" "$tandem" describe "$second" -o json
expect_text "$url#sha256=$digest" "$scratch/out"
echo "By an option, an override and S3, too. The digest may be given."
job
expect_code 0 "$scratch/out" "$tandem" submit --follow --weights "$url#sha256=$digest" "$scratch/job.yaml"
expect_text "begins with 4 tensors of $url" "$scratch/out"
"$tandem" datasets uploads | grep -q model.safetensors && die "the URL was uploaded"
expect_code 0 "$scratch/out" "$tandem" submit --follow --set "initial_weights.file=s3://data/model.safetensors" "$scratch/job.yaml"
expect_text "begins with 4 tensors of s3://data/model.safetensors#sha256=$digest" "$scratch/out"
echo "A sweep has them in each job, and the trained bits are those of a path."
expect_code 0 "$scratch/out" "$tandem" sweep "$scratch/job.yaml" --weights "$url" --grid training.seed=1,2 --wait
cp "$scratch/web/model.safetensors" "$scratch/data/local.safetensors"
expect_code 0 "$scratch/out" "$tandem" submit --follow --set initial_weights.file=local.safetensors "$scratch/job.yaml"
python3 model_tensors.py "$scratch/state/jobs/$second/model.safetensors" \
  "$scratch/state/jobs/$(submitted "$scratch/out")/model.safetensors" || die "the weights by URL gave another model"
echo "A fork reads no weights, and does not name the URL."
expect_code 0 "$scratch/out" "$tandem" fork "$second" --set training.epochs=3
expect_code 0 "$scratch/out" "$tandem" describe "$(submitted "$scratch/out")" -o json
if grep -q "$url" "$scratch/out"; then die "the fork names the URL"; fi

echo "What is not there, not allowed or no model is refused by name."
refused "no such file" "$web/ok/missing.safetensors"
refused "refuses it" "$web/status/403"
refused "may not fetch from there" "$web/to?http://169.254.169.254/latest/meta-data/"
refused "may not fetch from there" "s3://other/model.safetensors"
refused "has the SHA-256" "$url#sha256=$(printf '0%.0s' {1..64})"
refused "64 hexadecimal digits" "$url#sha256=12"
refused "fetches only from https, http and s3" "file:///etc/passwd"
refused "password" "https://user:secret@example.com/model.safetensors"
refused "write spaces" "https://example.com/my model.safetensors"
refused "must name a file" "s3://data/"
refused "no such file" "$web/ok/model-{0..3}.safetensors"
printf '<!DOCTYPE html><html><body>Please sign in</body></html>' >"$scratch/web/page.safetensors"
refused "$web/ok/page.safetensors\?\.\.\.: is a web page" "$web/ok/page.safetensors?secret"
head -c 300 /dev/urandom >"$scratch/web/noise.safetensors"
refused "$web/ok/noise.safetensors: not a sound safetensors file" "$web/ok/noise.safetensors"
job "initial_weights: {artifact: {job: \"$url\"}}"
expect_code 2 "$scratch/out" "$tandem" validate "$scratch/job.yaml"
expect_text "initial_weights.artifact.job.*initial_weights.file" "$scratch/out"
echo "A misspelt layer is refused before the fetch."
job "initial_weights: {file: \"$web/ok/never.safetensors\", layers: [dense_9]}"
expect_code 2 "$scratch/out" "$tandem" validate "$scratch/job.yaml"
expect_text "initial_weights.layers" "$scratch/out"
requests | grep -q never && die "the daemon fetched for a wrong job"

echo "A broken transfer goes on."
cp "$scratch/web/model.safetensors" "$scratch/web/flaky.safetensors"
job "initial_weights: {file: \"$web/flaky/flaky.safetensors\"}"
expect_code 0 "$scratch/out" "$tandem" validate "$scratch/job.yaml"

echo "A waiting job outlasts a restart, with the content of its submission."
job
expect_code 0 "$scratch/out" "$tandem" submit --set training.epochs=1000000 "$scratch/job.yaml"
long=$(submitted "$scratch/out")
await_state "$long" RUNNING
job "initial_weights: {file: \"$url\"}"
expect_code 0 "$scratch/out" "$tandem" submit "$scratch/job.yaml"
waiting=$(submitted "$scratch/out")
state_is "$waiting" QUEUED || die "$waiting does not wait"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
cp "$scratch/state/jobs/$second/model.safetensors" "$scratch/web/model.safetensors"
start_daemon "${allowed[@]}"
job "initial_weights: {file: \"$url\"}"
expect_code 0 "$scratch/out" "$tandem" submit "$scratch/job.yaml"
changed=$(submitted "$scratch/out")
new=$(sha256sum "$scratch/web/model.safetensors" | cut -c 1-64)
expect_code 0 "$scratch/out" "$tandem" cancel "$long"
await_state "$waiting" SUCCEEDED
await_state "$changed" SUCCEEDED
expect_code 0 "$scratch/out" "$tandem" watch "$waiting"
expect_text "begins with 4 tensors of $url#sha256=$digest" "$scratch/out"
expect_code 0 "$scratch/out" "$tandem" watch "$changed"
expect_text "begins with 4 tensors of $url#sha256=$new" "$scratch/out"
echo "PASSED"
