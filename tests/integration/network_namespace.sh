#!/usr/bin/env bash
# Tests a daemon and its client on two hosts of the network: each has its own network namespace, joined by a pair of
# virtual links. With TLS a job is submitted and followed across. Without TLS the daemon refuses to listen, and a client
# that speaks plain text to its port fails at once with a clear message. Exit code 77: not root, or no iproute2.
cd "$(dirname "$0")"
source ./daemon.bash
source ./two_hosts.bash 10.97.31
on_server=(ip netns exec "$server_side")
on_client=(ip netns exec "$client_side")

# An authority, and a certificate of the daemon's address by it.
(
  cd "$scratch"
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Tandem test authority" -keyout ca.key -out ca.pem
  openssl req -newkey rsa:2048 -nodes -subj "/CN=tandemd" -keyout server.key -out server.csr
  printf 'subjectAltName=IP:10.97.31.1' >extensions
  openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out server.pem
  # Another authority, which vouched for nothing here.
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=Stranger" -keyout stranger.key -out stranger.pem
) >"$scratch/openssl.log" 2>&1 || {
  cat "$scratch/openssl.log" >&2
  die "openssl made no certificates"
}

cat >"$scratch/job.yaml" <<'END'
name: across
dataset:
  synthetic: {shape: [1, 8, 8], classes: 4, train_samples: 256, validation_samples: 64}
model:
  input: {shape: [1, 8, 8]}
  layers:
  - dense: {units: 16, activation: relu}
  - dense: {units: 4}
training:
  loss: {softmax_cross_entropy: {}}
  optimizer: {sgd: {learning_rate: 0.1}}
  global_batch_size: 32
  epochs: 2
END

echo "Without TLS the daemon does not listen to other machines."
expect_code 1 "$scratch/plain.log" "${on_server[@]}" "$tandemd" --state-folder "$scratch/plain" --listen 10.97.31.1:7447
expect_text "TLS" "$scratch/plain.log"
expect_text "10\.97\.31\.1" "$scratch/plain.log"

echo "With TLS a job is submitted and followed across."
start_daemon "${on_server[@]}" -- --listen 10.97.31.1:0 --cpu-devices 2 \
  --tls-cert "$scratch/server.pem" --tls-key "$scratch/server.key"
[[ $address == 10.97.31.1:* ]] || die "it listens on $address"
cp "$scratch/state/token" "$scratch/token"
chmod 600 "$scratch/token"
export TANDEM_TOKEN_FILE=$scratch/token
expect_code 0 "$scratch/submit.log" "${on_client[@]}" "$tandem" --tls-ca "$scratch/ca.pem" submit "$scratch/job.yaml" --follow
cat "$scratch/submit.log"
expect_code 0 "$scratch/list.log" "${on_client[@]}" "$tandem" --tls-ca "$scratch/ca.pem" list
expect_text "succeeded" "$scratch/list.log"
job=$(grep -oE 'across-[a-z0-9]+' "$scratch/list.log" | head -n 1)
expect_code 0 "$scratch/download.log" "${on_client[@]}" "$tandem" --tls-ca "$scratch/ca.pem" download "$job" --to "$scratch/model"
[[ -s $scratch/model/model.safetensors ]] || die "no model came across"

echo "A client without TLS sends no token in the clear, and gets nowhere where it is told to."
expect_code 2 "$scratch/plain-client.log" "${on_client[@]}" "$tandem" list
expect_text "TLS|tls" "$scratch/plain-client.log"
expect_code 4 "$scratch/plain-forced.log" "${on_client[@]}" "$tandem" --plaintext --timeout 10 list
echo "Neither does one that trusts another authority."
expect_code 4 "$scratch/stranger.log" "${on_client[@]}" "$tandem" --tls-ca "$scratch/stranger.pem" --timeout 10 list

echo "The daemon is as it was."
expect_code 0 "$scratch/again.log" "${on_client[@]}" "$tandem" --tls-ca "$scratch/ca.pem" devices
kill -TERM "$daemon"
code=0
wait "$daemon" || code=$?
[[ $code == 0 ]] || die "the daemon ended with $code"
echo "passed"
