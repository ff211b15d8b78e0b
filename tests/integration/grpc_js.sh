#!/usr/bin/env bash
# Tests an independent client: @grpc/grpc-js with server reflection, without Tandem's protocol buffers. npm's packages
# are kept in ~/.cache/tandem/npm. Exit code 77: no Node.js, or npm cannot fetch them.
cd "$(dirname "$0")"
source ./daemon.bash

npm_packages grpc_js

start_daemon --listen 127.0.0.1:0 --cpu-devices 1
NODE_PATH=$packages/node_modules node grpc_js/client.js "$address" "$TANDEM_TOKEN_FILE"
