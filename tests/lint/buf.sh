#!/usr/bin/env bash
# Lints the protocol buffers with buf, from npm, kept outside the source tree. Exit code 77: no npm.
set -euo pipefail
cd "$(dirname "$0")/../../proto"
version=1.75.0
tools="$HOME/.cache/tandem/npm/buf-$version"
if [[ ! -x $tools/node_modules/.bin/buf ]]; then
  command -v npm >/dev/null || {
    echo "npm is not installed"
    exit 77
  }
  mkdir -p "$tools"
  npm install --silent --no-fund --no-audit --prefix "$tools" "@bufbuild/buf@$version" >/dev/null || {
    echo "npm cannot install @bufbuild/buf@$version"
    exit 77
  }
fi
"$tools/node_modules/.bin/buf" lint
echo "buf lint: clean"
