#!/usr/bin/env bash
# Tests that exported models give Tandem's outputs in ONNX Runtime. npm's packages are kept in ~/.cache/tandem/npm. Exit
# code 77: no Node.js, or npm cannot fetch them.
cd "$(dirname "$0")"
source ./daemon.bash

npm_packages onnx

mkdir "$scratch/data"
start_daemon --listen 127.0.0.1:0 --cpu-devices 1 --data-folder "$scratch/data"
NODE_PATH=$packages/node_modules node onnx/compare.js "$tandem" onnx/jobs.yaml "$scratch/data"
