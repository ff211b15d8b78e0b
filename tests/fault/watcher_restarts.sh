#!/usr/bin/env bash
# Restarts daemons while clients follow their jobs: over TLS and plain text, over loopback and from another host (a
# network namespace behind a pair of virtual links), by SIGTERM and by SIGKILL in turns. Each follower must be back
# within 2 s of its daemon, or print an event within 1 s if a busy machine makes the event late, and receive every event
# once. 4 restarts; TANDEM_WHOLE=1: 100. Exit code 77: not root, or no iproute2 or openssl.
cd "$(dirname "$0")"
source ../integration/daemon.bash
source ../integration/two_hosts.bash 10.97.32

logged "$scratch/openssl.log" openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj "/CN=tandemd" -keyout "$scratch/server.key" \
  -out "$scratch/server.pem" -addext "subjectAltName=IP:127.0.0.1,IP:10.97.32.1" || die "openssl made no certificate"

restarts=4
[[ ${TANDEM_WHOLE:-0} != 1 ]] || restarts=100
python3 ./watcher_restarts.py --tandemd "$tandemd" --tandem "$tandem" --scratch "$scratch" --server-namespace "$server_side" \
  --client-namespace "$client_side" --server-address 10.97.32.1 --restarts "${RESTARTS:-$restarts}" ||
  die "a follower was late, or saw other than there was"
echo "passed"
