#!/usr/bin/env bash
# Tests data by URL. The daemon fetches from a faulty web server, and from a server that speaks S3 and checks
# signatures. It refuses forbidden URLs, continues after a kill, and fetches a public data set by name. Exit code 77: no
# Python.
cd "$(dirname "$0")"
source ./daemon.bash

command -v python3 >/dev/null || skip "python3 is not installed"
mkdir "$scratch/web"
python3 - "$scratch/web" <<'END'
import random
import sys
random.seed(1)
def table(rows):
    lines = ["a,b,sum"]
    for _ in range(rows):
        a, b = random.random(), random.random()
        lines.append(f"{a:.6f},{b:.6f},{a + b:.6f}")
    return "\n".join(lines) + "\n"
open(f"{sys.argv[1]}/table.csv", "w").write(table(400))
open(f"{sys.argv[1]}/large.csv", "w").write(table(20000))
END
shared=$here/../../../shared/data/mnist
if [[ -d $shared ]]; then cp "$shared"/*.gz "$scratch/web"; fi
python3 mishap_server.py "$scratch/web" "$scratch/port" &
await 180 test -s "$scratch/port" || die "the web server did not start"
web=http://127.0.0.1:$(<"$scratch/port")

# job PATH: a job file for a table.
job() {
  cat >"$scratch/job.yaml" <<END
name: by-url
dataset:
  csv: {train: "$1"}
  validation_split: {fraction: 0.2}
model:
  input: {shape: [2]}
  layers:
  - dense: {units: 8, activation: tanh}
  - dense: {units: 1}
training:
  loss: {mse: {}}
  optimizer: {adam: {learning_rate: 0.01}}
  global_batch_size: 32
  epochs: 2
END
}
requests() { python3 -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read().decode(), end="")' "$web/log"; }
# refused TEXT URL: expects a refused job. The message has the field and the text, and no secret of the URL.
refused() {
  job "$2"
  expect_code 2 "$scratch/refused" "$tandem" validate "$scratch/job.yaml"
  expect_text "csv.train" "$scratch/refused"
  expect_text "$1" "$scratch/refused"
  if grep -q "secret" "$scratch/refused"; then die "the refusal of $2 shows its query"; fi
}

echo "By default the daemon does not connect to private addresses, however they are written."
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --datasets-mirror "$web/ok"
for url in "$web/ok/table.csv?secret" http://localhost/x http://127.1/x http://2130706433/x "http://[::1]/x" \
  http://169.254.169.254/latest/meta-data/; do
  refused "may not fetch from there" "$url"
done
refused "fetches only from https, http and s3" file:///etc/passwd
refused "password" https://user:secret@example.com/x
requests | grep -q . && die "the daemon asked the server all the same"
if [[ -d $shared ]]; then
  echo "A public set comes from the mirror that the owner named."
  expect_code 0 "$scratch/fetch" "$tandem" datasets fetch mnist
  expect_text "60,000 training" "$scratch/fetch"
  expect_code 0 "$scratch/fetch" "$tandem" datasets fetch mnist
  [[ $(requests | grep -c train-images) == 1 ]] || die "it was fetched twice"
  expect_code 0 "$scratch/show" "$tandem" datasets show mnist
  expect_text "60,000" "$scratch/show"
fi
kill "$daemon"
wait "$daemon" || true

echo "A job trains on a table by URL, and keeps the URL."
export AWS_ENDPOINT_URL=$web/s3 AWS_ACCESS_KEY_ID=tester AWS_SECRET_ACCESS_KEY=a+secret/key
mkdir "$scratch/data"
allowed=(--listen 127.0.0.1:0 --cpu-devices 3 --data-folder "$scratch/data" --fetch-from 127.0.0.1
  --fetch-from "s3://data")
start_daemon "${allowed[@]}"
job "$web/ok/table.csv"
expect_code 0 "$scratch/first" "$tandem" submit "$scratch/job.yaml"
# For 30 seconds, the server is not asked for changes.
expect_code 0 "$scratch/second" "$tandem" submit "$scratch/job.yaml"
for submission in first second; do
  expect_code 0 "$scratch/out" "$tandem" watch "$(submitted "$scratch/$submission")"
done
[[ $(requests | grep -c "/ok/table.csv") == 1 ]] || die "it was fetched again at once"
expect_code 0 "$scratch/out" "$tandem" describe "$(submitted "$scratch/first")" -o json
expect_text "$web/ok/table.csv#sha256=$(sha256sum "$scratch/web/table.csv" | cut -c 1-64)" "$scratch/out"
# These fetches mostly wait, so all run at the same time. The longest wait starts first: a user has 4 downloads at once.
paths=(stall/table.csv short/table.csv cut/3000/table.csv flaky/table.csv changes/table.csv no-ranges/table.csv "to?$web/ok/table.csv")
for i in "${!paths[@]}"; do
  job "$web/${paths[i]}"
  mv "$scratch/job.yaml" "$scratch/job-$i.yaml"
  timeout 300 "$tandem" validate "$scratch/job-$i.yaml" >"$scratch/mishap-$i" 2>&1 &
  mishaps[i]=$!
done
# end_mishap CODE PATH: expects that the fetch from this path ends with this code. Its output is the file $mishap.
end_mishap() {
  local i code=0
  for i in "${!paths[@]}"; do [[ ${paths[i]} != "$2" ]] || break; done
  mishap=$scratch/mishap-$i
  wait "${mishaps[i]}" || code=$?
  [[ $code == "$1" ]] || {
    cat "$mishap" >&2
    die "exit code $code, not $1: $2"
  }
}

echo "What is not there, not allowed or not the right thing is refused by name."
refused "no such file" "$web/ok/missing.csv"
refused "refuses it" "$web/status/403"
refused "more than 5 times" "$web/loop"
refused "redirects to neither http nor https" "$web/to?file:///etc/passwd"
refused "may not fetch from there" "$web/to?http://169.254.169.254/latest/meta-data/"
refused "has the SHA-256" "$web/ok/table.csv#sha256=$(printf '0%.0s' {1..64})"

echo "The same from S3, with signed requests."
job "s3://data/table.csv"
expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/job.yaml"
refused "may not fetch from there" "s3://other/table.csv"
refused "must name a file" "s3://data/"

echo "A broken transfer goes on."
for path in "${paths[@]:2}"; do end_mishap 0 "$path"; done
requests | grep -q "/cut/3000/table.csv bytes=3000-" || die "it did not go on where it was cut"
end_mishap 2 short/table.csv
expect_text "csv.train" "$mishap"
expect_text "could not be fetched in 6 tries" "$mishap"
echo "A transfer that stands still is cut off, and goes on."
end_mishap 0 stall/table.csv

echo "A hundred shards over HTTP survive one failing request in ten."
python3 - "$scratch/web" "$scratch/pictures" <<'END'
import io, os, random, struct, sys, tarfile, zlib
def png(value, side=8):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = b"".join(b"\0" + bytes((value + random.randrange(9)) % 256 for _ in range(side)) for _ in range(side))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)) +
            chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
random.seed(2)
for i in range(600):
    folder = f"{sys.argv[2]}/{('aster', 'poppy', 'rose')[i % 3]}"
    os.makedirs(folder, exist_ok=True)
    with open(f"{folder}/{i}.png", "wb") as file:
        file.write(png(60 * (i % 3), side=16))
for shard in range(100):
    with tarfile.open(f"{sys.argv[1]}/set-{shard:02}.tar", "w") as tar:
        for i in range(6):
            for ending, content in (("png", png(100 * (i % 2))), ("cls", str(i % 2).encode())):
                member = tarfile.TarInfo(f"{shard:02}-{i}.{ending}")
                member.size = len(content)
                member.mtime = 1.5  # Python's tarfile writes a pax header for it.
                tar.addfile(member, io.BytesIO(content))
END
# shards URL: a job file for shards.
shards() {
  cat >"$scratch/job.yaml" <<END
name: shards-by-url
dataset:
  webdataset: {train: "$1", shuffle_buffer: 50}
  validation_split: {fraction: 0.1}
model:
  input: {shape: [1, 8, 8]}
  layers:
  - flatten: {}
  - dense: {units: 2}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  metrics: [accuracy]
  global_batch_size: 20
  epochs: 3
END
}
shards "$web/tenth/set-{00..99}.tar"
expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/job.yaml"
expect_text "accuracy 1" "$scratch/out"
[[ $(find "$scratch/state/cache/entries" -name 'set-*.tar' | wc -l) == 100 ]] || die "not all shards came"
# 11 of the 110 requests or so failed.
tenths=$(requests | grep -c "/tenth/set-")
((tenths >= 110 && tenths <= 113)) || die "$tenths requests for 100 shards"
echo "The same shards from S3, by a pattern and as a folder."
for path in "s3://data/set-{00..99}.tar" s3://data/; do
  shards "$path"
  expect_code 0 "$scratch/out" "$tandem" validate "$scratch/job.yaml"
done
shards "s3://data/set-{00..100}.tar"
expect_code 2 "$scratch/out" "$tandem" validate "$scratch/job.yaml"
expect_text "dataset.webdataset.train" "$scratch/out"

echo "Packed pictures train by URL. Three kills of the worker in mid-epoch end with the bits of an undisturbed run."
expect_code 0 "$scratch/out" "$tandem" datasets pack "$scratch/pictures" "$scratch/data/packed" --shard-size 12KiB
expect_text "packed 600 training and 0 validation pictures of 3 classes into 100 shards" "$scratch/out"
cp "$scratch"/data/packed/*.tar "$scratch/web"
# packed_job PATH REPLICAS: a job file with 75 steps an epoch and a checkpoint at every seventh step.
packed_job() {
  cat >"$scratch/job.yaml" <<END
name: packed-shards
dataset:
  webdataset: {train: "$1", shuffle_buffer: 50}
  augmentation: [{horizontal_flip: {}}]
model:
  input: {shape: [1, 16, 16]}
  layers:
  - conv2d: {filters: 32, kernel: [5, 5], activation: relu}
  - conv2d: {filters: 64, kernel: [5, 5], activation: relu}
  - dense: {units: 3}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {momentum: {learning_rate: 0.01}}
  global_batch_size: 8
  epochs: 30
  report: {every_steps: 1}
replicas: {count: $2}
checkpoints: {every_steps: 7}
max_restarts: 100
END
}
# await_in_epoch JOB ATTEMPT: waits until this attempt trains in mid-epoch, after a checkpoint in mid-epoch. Reads the
# job's events, because a job that is asked for its state again and again may end between two answers.
await_in_epoch() {
  python3 -c '
import json, sys
saved = 0
for line in sys.stdin:
    event = json.loads(line)
    saved = int(event.get("checkpoint", {}).get("step", saved))
    step = int(event.get("progress", {}).get("step", 0))
    if event.get("attempt") == int(sys.argv[1]) and step > saved and step % 75 and saved % 75:
        sys.exit(0)
sys.exit(1)' "$2" < <(timeout 180 "$tandem" watch "$1" -o json)
}
counts=2
if ((${TANDEM_WHOLE:-0})); then counts="1 2 3"; fi
for replicas in $counts; do
  packed_job "$web/tenth/train-{000000..000099}.tar" "$replicas"
  expect_code 0 "$scratch/out" "$tandem" submit "$scratch/job.yaml"
  killed=$(submitted "$scratch/out")
  for attempt in 1 2 3; do
    await_in_epoch "$killed" "$attempt" || die "attempt $attempt does not train: $("$tandem" describe "$killed")"
    kill -9 "$(pgrep -f -- "$scratch/state/jobs/$killed" | head -n 1)" || die "there is no worker to kill"
  done
  await_state "$killed" SUCCEEDED 300
  packed_job "$scratch/data/packed" "$replicas"
  expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/job.yaml"
  whole=$(submitted "$scratch/out")
  python3 model_tensors.py "$scratch/state/jobs/$killed/model.safetensors" "$scratch/state/jobs/$whole/model.safetensors" ||
    die "with $replicas replicas, the killed job has other tensors"
done

echo "A daemon that was killed goes on where the fetch was."
job "$web/slow/large.csv"
"$tandem" validate "$scratch/job.yaml" >"$scratch/killed" 2>&1 &
has_part() { [[ -n $(find "$scratch/state/cache/partial" -name '*.part' -size +100k 2>/dev/null) ]]; }
await 180 has_part || die "no part of the file came"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
start_daemon "${allowed[@]}"
expect_code 0 "$scratch/out" "$tandem" validate "$scratch/job.yaml"
requests | grep -qE "/slow/large.csv bytes=[1-9]" || die "it began anew"

echo "With the wrong secret S3 refuses, and that is said."
kill "$daemon"
wait "$daemon" || true
AWS_SECRET_ACCESS_KEY=wrong start_daemon "${allowed[@]}"
refused "credentials.*SignatureDoesNotMatch" "s3://data/large.csv"
echo "PASSED"
