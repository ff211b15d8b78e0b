#!/usr/bin/env bash
# Tests an independent client: @grpc/grpc-js with server reflection, without Tandem's protocol buffers. npm's packages
# are kept in ~/.cache/tandem/npm. Exit code 77: no Node.js, or npm cannot fetch them.
cd "$(dirname "$0")"
source ./daemon.bash

command -v node >/dev/null || skip "node is not installed"
packages=$HOME/.cache/tandem/npm/grpc-js-$(sha256sum grpc_js/package-lock.json | cut -c 1-16)
if [[ ! -e $packages/complete ]]; then
  command -v npm >/dev/null || skip "npm is not installed"
  mkdir -p "$packages"
  cp grpc_js/package.json grpc_js/package-lock.json "$packages"
  npm ci --silent --no-fund --no-audit --ignore-scripts --prefix "$packages" >/dev/null || skip "npm cannot fetch the packages"
  touch "$packages/complete"
fi

start_daemon --listen 127.0.0.1:0 --cpu-devices 1
NODE_PATH=$packages/node_modules node grpc_js/client.js "$address" "$TANDEM_TOKEN_FILE"
