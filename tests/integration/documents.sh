#!/usr/bin/env bash
# The examples of the documents. Each YAML block is valid. Each command of client/README.md, client/MIGRATION.md,
# proto/README.md and server/README.md runs, but for a listed few. tests/lint/documents.py checks the names.
# Exit code 77: no Python, or no Fashion-MNIST.
cd "$(dirname "$0")"
source ./daemon.bash

command -v python3 >/dev/null || skip "python3 is not installed"
[[ -d /usr/share/datasets/fashion-mnist ]] || skip "Fashion-MNIST is not installed"

mkdir "$scratch/bin" "$scratch/data"
for program in "$tandemd" "$bin/server/worker/tandem-worker" "$tandem"; do ln -s "$(readlink -f "$program")" "$scratch/bin"; done
export PATH=$scratch/bin:$PATH
start_daemon --listen 127.0.0.1:0 --cpu-devices 2 --data-folder /usr/share/datasets --data-folder "$scratch/data"
unset TANDEM_ADDRESS TANDEM_TOKEN_FILE
export TANDEM_STATE=$scratch/state
python3 documents/run_pages.py "$(readlink -f ../..)" "$scratch/reader"
tandem shutdown
