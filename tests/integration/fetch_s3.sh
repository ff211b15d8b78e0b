#!/usr/bin/env bash
# Tests an independent S3 server (s3rver, from npm, kept in ~/.cache/tandem/npm). A job trains on Fashion-MNIST in a
# bucket, and the daemon fetches a whole folder that needs several pages of a listing. Exit code 77: no Node.js, npm
# cannot fetch the server, or Fashion-MNIST is not installed.
cd "$(dirname "$0")"
source ./daemon.bash

images=/usr/share/datasets/fashion-mnist
[[ -d $images ]] || skip "$images is not there"
npm_packages s3rver
# The server's page tokens need a cipher that OpenSSL 3 counts as legacy.
NODE_PATH=$packages/node_modules node --openssl-legacy-provider s3rver/server.js "$scratch" >"$scratch/s3.log" 2>&1 &
await 60 test -s "$scratch/port" || die "the server did not start: $(cat "$scratch/s3.log")"
export AWS_ENDPOINT_URL=http://127.0.0.1:$(<"$scratch/port") AWS_ACCESS_KEY_ID=S3RVER AWS_SECRET_ACCESS_KEY=S3RVER
NODE_PATH=$packages/node_modules node s3rver/fill.js "$AWS_ENDPOINT_URL" "$images" || die "the bucket could not be filled"

start_daemon --listen 127.0.0.1:0 --cpu-devices 2
cat >"$scratch/job.yaml" <<'END'
name: from-s3
dataset:
  idx:
    train_images: s3://data/fashion/train-images-idx3-ubyte.gz
    train_labels: s3://data/fashion/train-labels-idx1-ubyte.gz
    validation_images: s3://data/fashion/t10k-images-idx3-ubyte.gz
    validation_labels: s3://data/fashion/t10k-labels-idx1-ubyte.gz
  train_limit: 6000
model:
  input: {shape: [1, 28, 28]}
  layers:
  - flatten: {}
  - dense: {units: 64, activation: relu}
  - dense: {units: 10}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {nesterov: {learning_rate: 0.05, momentum: 0.9}}
  metrics: [accuracy]
  global_batch_size: 64
  epochs: 2
END
expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/job.yaml"
job=$(submitted "$scratch/out")
expect_code 0 "$scratch/out" "$tandem" describe "$job" -o json
expect_text "s3://data/fashion/train-images-idx3-ubyte.gz#sha256=" "$scratch/out"
expect_code 0 "$scratch/out" "$tandem" evaluate "$job"
expect_text "accuracy 0\.[78]" "$scratch/out"

echo "A folder of 1100 pictures in 2 classes: more than a page."
cat >"$scratch/folder.yaml" <<'END'
name: folder
dataset:
  image_folder: {train: "s3://data/pictures"}
model:
  input: {shape: [1, 2, 2]}
  layers:
  - flatten: {}
  - dense: {units: 2}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: 100
  epochs: 1
END
expect_code 0 "$scratch/out" "$tandem" submit --follow "$scratch/folder.yaml"
[[ $(find "$scratch/state/cache/entries" -name '*.png' | wc -l) == 1100 ]] || die "not all of it came"

echo "An unknown key is refused in so many words."
kill "$daemon"
wait "$daemon" || true
AWS_ACCESS_KEY_ID=nobody start_daemon --listen 127.0.0.1:0 --cpu-devices 2
sed -i 's|s3://data/pictures|s3://data/others|' "$scratch/folder.yaml"
expect_code 2 "$scratch/out" "$tandem" validate "$scratch/folder.yaml"
expect_text "InvalidAccessKeyId.*AWS_ACCESS_KEY_ID" "$scratch/out"
echo "PASSED"
