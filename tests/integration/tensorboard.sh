#!/usr/bin/env bash
# Tests `tandem tensorboard` and `tandem download --tensorboard`. An independent reader checks the framing and each
# checksum, and finds the values of the event log. The copy must survive kills of the program. $TANDEM_DATA (default:
# ../shared/data beside the repository) is the folder with MNIST and CIFAR-10. Examples without their data are skipped.
cd "$(dirname "$0")"
source ./daemon.bash

cat >"$scratch/compare.py" <<'END'
"""compare.py FILE LOG JOB: reads an event file by TensorBoard's format, and compares its scalars with the
job's event log, and its hyperparameters with the job."""
import json, struct, sys

table = []
for i in range(256):
    for _ in range(8):
        i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
    table.append(i)

def masked_crc(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF

def records(data):
    at = 0
    while at < len(data):
        size, crc = struct.unpack_from("<QI", data, at)
        assert crc == masked_crc(data[at:at + 8]), f"length's checksum at {at}"
        record = data[at + 12:at + 12 + size]
        assert struct.unpack_from("<I", data, at + 12 + size)[0] == masked_crc(record), f"checksum at {at}"
        yield record
        at += 16 + size

def fields(data):
    at = 0
    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        kind = key & 7
        size = {0: 0, 1: 8, 5: 4}[kind] if kind != 2 else varint()
        if kind == 0:
            yield key >> 3, varint()
            continue
        assert at + size <= len(data), "a field is cut"
        yield key >> 3, data[at:at + size]
        at += size

def single(value):
    return struct.unpack("<f", struct.pack("<f", float(value)))[0]

read, texts, hyperparameters = [], 0, {}
events = [list(fields(record)) for record in records(open(sys.argv[1], "rb").read())]
assert (3, b"brain.Event:2") in events[0], events[0]
for event in events[1:]:
    event = dict(event)
    time, step = struct.unpack("<d", event[1])[0], event.get(2, 0)
    for _, value in fields(event[5]):
        value = dict(fields(value))
        if 2 in value:
            read.append((value[1].decode(), step, round(time, 3), struct.unpack("<f", value[2])[0]))
        elif 8 in value:
            texts += 1
            assert b"epochs" in dict(fields(value[8]))[8], "the job's settings are not there"
        else:
            plugin = dict(fields(dict(fields(value[9]))[1]))
            assert (value[1], plugin[1]) == (b"_hparams_/session_start_info", b"hparams"), value
            for field, entry in fields(dict(fields(plugin[2]))[3]):
                if field == 1:
                    entry = dict(fields(entry))
                    hyperparameters[entry[1].decode()] = dict(fields(entry[2]))
assert texts == 1, texts

# The set fields of the job, as numbers, texts and booleans of google.protobuf.Value.
def flat(value, path):
    if isinstance(value, dict):
        for key, one in value.items():
            yield from flat(one, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for i, one in enumerate(value):
            yield from flat(one, f"{path}[{i}]")
    else:
        yield path, value
for path, value in flat(json.load(open(sys.argv[3]))["spec"], ""):
    shown = hyperparameters.pop(path)
    if 2 in shown:
        assert struct.unpack("<d", shown[2])[0] == float(value), (path, shown, value)
    else:
        assert shown in ({3: value.encode()} if isinstance(value, str) else {4: int(value)},), (path, shown, value)
assert not hyperparameters, hyperparameters

from datetime import datetime
logged = []
for event in map(json.loads, open(sys.argv[2])):
    stamp = event["time"].rstrip("Z")
    whole, _, part = stamp.partition(".")
    time = round(datetime.fromisoformat(whole + "+00:00").timestamp() + float("0." + (part or "0")), 3)
    def add(tag, value):
        logged.append((tag, step, time, single(value)))
    def evaluation(prefix, result):
        add(prefix + "/loss", result.get("loss", 0))
        for name, value in sorted(result.get("metrics", {}).items()):
            add(f"{prefix}/{name}", value)
    kind = next((kind for kind in ("progress", "epoch", "validation") if kind in event), None)
    if kind is None:
        continue
    body = event[kind]
    step = int(body.get("step", 0))
    if kind == "progress":
        evaluation("training", body.get("training", {}))
        add("learning_rate", body.get("learning_rate", body.get("learningRate", 0)))
        add("images_per_second", body.get("images_per_second", body.get("imagesPerSecond", 0)))
    elif kind == "epoch":
        add("epoch", body["epoch"])
        evaluation("epoch_training", body.get("training", {}))
        if "validation" in body:
            evaluation("validation", body["validation"])
        add("epoch_images_per_second", body.get("images_per_second", body.get("imagesPerSecond", 0)))
    else:
        evaluation("validation", body["validation"])
assert logged
assert repr(read) == repr(logged), next((r, l) for r, l in zip(read + [None], logged + [None]) if repr(r) != repr(l))
print(f"{len(read)} scalars equal the log")
END

folders=(--data-folder /usr/share/datasets --data-folder /usr/share/common-licenses --data-folder "$(readlink -f "$here/../../deploy/examples/data")")
data=${TANDEM_DATA:-$here/../../../shared/data}
if [[ -d $data ]]; then folders+=(--data-folder "$(readlink -f "$data")"); fi
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --reference-devices 0 "${folders[@]}"
"$tandem" init synthetic >"$scratch/job.yaml"
submit() { "$tandem" submit "$scratch/job.yaml" --set training.report.every_seconds=0.05 "$@" >"$scratch/out"; }

echo "-- a copy that is killed again and again while the job trains equals the log"
submit --set training.epochs=300
job=$(submitted "$scratch/out")
for wait in 0.1 0.2 0.3 0.4 0.5 0.6 0.7 0.8; do
  # In the foreground, `timeout` waits for the end of the killed copy, which then no longer locks the file.
  timeout --foreground -s KILL "$wait" "$tandem" tensorboard "$scratch/board" "$job" >/dev/null 2>&1 || true
done
expect_code 0 "$scratch/out" "$tandem" tensorboard "$scratch/board" "$job"
"$tandem" watch "$job" -o json >"$scratch/log" || die "the job failed"
event_file=("$scratch/board/$job"/events.out.tfevents.*)
"$tandem" describe "$job" -o json >"$scratch/described"
python3 "$scratch/compare.py" "${event_file[0]}" "$scratch/log" "$scratch/described" || die "the copy differs from the log"

echo "-- a download has the same bytes, and a repetition adds none"
expect_code 0 "$scratch/out" "$tandem" download "$job" --tensorboard "$scratch/fetched"
cmp "${event_file[0]}" "$scratch/fetched/$job/"events.out.tfevents.* || die "the download differs"
expect_code 0 "$scratch/out" "$tandem" tensorboard "$scratch/board" --once
cmp "${event_file[0]}" "$scratch/fetched/$job/"events.out.tfevents.* || die "a repetition changed the file"

echo "-- without a job, a new job appears by itself, and Ctrl-C ends the copy"
"$tandem" tensorboard "$scratch/all" >"$scratch/mirrored" 2>&1 &
mirror=$!
await 180 eval '[[ -e $(echo "$scratch/all/$job"/events*) ]]' || die "no copy of the first job"
submit --set training.epochs=5
second=$(submitted "$scratch/out")
[[ $second != "$job" ]] || die "no second job"
"$tandem" describe "$second" -o json >"$scratch/described"
"$tandem" watch "$second" -o json >"$scratch/log" || die "the second job failed"
compare_second() { python3 "$scratch/compare.py" "$scratch/all/$second"/events.out.tfevents.* "$scratch/log" "$scratch/described" >"$scratch/compared" 2>&1; }
await 180 compare_second || {
  cat "$scratch/compared" >&2
  die "the second copy differs from the log"
}
kill -INT "$mirror"
code=0
wait "$mirror" || code=$?
((code == 0)) || die "it ended with $code"

echo "-- the files of all examples equal the logs"
examples=0
for example in "$here"/../../deploy/examples/*.yaml; do
  # One epoch of four steps.
  code=0
  "$tandem" submit "$example" --set replicas.count=1 --set training.epochs=1 --set dataset.train_limit=64 --set dataset.validation_limit=32 \
    --set training.global_batch_size=16 --set training.report.every_steps=1 >"$scratch/out" 2>&1 || code=$?
  if ((code)); then
    echo "SKIPPED: $(basename "$example"): $(head -n 1 "$scratch/out")"
    continue
  fi
  job=$(submitted "$scratch/out")
  "$tandem" watch "$job" -o json >"$scratch/log" || die "$(basename "$example") failed"
  "$tandem" describe "$job" -o json >"$scratch/described"
  expect_code 0 "$scratch/out" "$tandem" download "$job" --tensorboard "$scratch/examples"
  python3 "$scratch/compare.py" "$scratch/examples/$job/"events.out.tfevents.* "$scratch/log" "$scratch/described" || die "the file of $(basename "$example") differs from the log"
  examples=$((examples + 1))
done
((examples >= 3)) || die "only $examples examples ran"
