#!/usr/bin/env bash
# The Python client, as its user has it: the wheel is built, and installed without the repository and without a network. The
# client follows a job over 100 cut connections, fetches its model and asks it, and does so over TLS. It survives silent networks, late
# answers and proxies. A user's program passes mypy --strict.
# Exit code 77: Debian's Python has no grpc (deploy/setup.sh --test installs it).
cd "$(dirname "$0")"
source ./daemon.bash

python=/usr/bin/python3
"$python" -c "import build, google.protobuf, grpc, numpy, pandas, venv" 2>/dev/null || skip "$python has no build, grpc, google.protobuf, numpy, pandas or venv"

source_folder=$scratch/source
mkdir -p "$source_folder/client/cli" "$source_folder/proto"
cp -r ../../client/python "$source_folder/client/"
cp ../../client/cli/version.h "$source_folder/client/cli/"
cp -r ../../proto/tandem ../../proto/google "$source_folder/proto/"
logged "$scratch/build.log" "$python" -m build --no-isolation --wheel --outdir "$scratch/wheel" "$source_folder/client/python" ||
  die "the wheel does not build"
rm -r "$source_folder"
"$python" -m venv --system-site-packages "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --no-index "$scratch"/wheel/tandem-*.whl

start_daemon --listen 127.0.0.1:0 --cpu-devices 1
client=$here/python_client
cd "$scratch"
timeout 600 "$scratch/venv/bin/python" "$client/check.py" "$tandem" "$scratch" || die "the client failed"
timeout 600 "$scratch/venv/bin/python" "$client/check_breaks.py" || die "the client failed with a fake daemon"

# The same daemon over TLS, for clients with certificates.
"$tandem" shutdown >/dev/null
wait "$daemon" || true
mkdir "$scratch/tls"
(
  cd "$scratch/tls"
  for name in ca stranger; do
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=$name" -keyout "$name.key" -out "$name.pem"
  done
  for name in server client; do
    openssl req -newkey rsa:2048 -nodes -subj "/CN=$name" -keyout "$name.key" -out "$name.csr"
    openssl x509 -req -in "$name.csr" -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -out "$name.pem" \
      -extfile <(echo "subjectAltName=DNS:tandemd.test")
  done
) >"$scratch/openssl.log" 2>&1 || { cat "$scratch/openssl.log" >&2 && die "openssl made no certificates"; }
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --tls-cert "$scratch/tls/server.pem" --tls-key "$scratch/tls/server.key" \
  --tls-client-ca "$scratch/tls/ca.pem"
GRPC_VERBOSITY=NONE timeout 600 "$scratch/venv/bin/python" "$client/check_tls.py" "$scratch/tls" || die "the client failed over TLS"
"$tandem" --tls-ca "$scratch/tls/ca.pem" --tls-cert "$scratch/tls/client.pem" --tls-key "$scratch/tls/client.key" \
  --tls-server-name tandemd.test shutdown >/dev/null
wait "$daemon" || true
start_daemon --listen 127.0.0.1:0 --cpu-devices 1

if command -v /usr/bin/mypy >/dev/null; then
  /usr/bin/mypy --strict --no-incremental --python-executable "$scratch/venv/bin/python" "$client/user_program.py" ||
    die "mypy --strict refuses a user's program"
  timeout 600 "$scratch/venv/bin/python" "$client/user_program.py" >"$scratch/user.log" || die "the user's program failed"
  expect_text '^2 [01]\.' "$scratch/user.log"
else
  echo "SKIPPED: mypy: it is not installed"
fi
