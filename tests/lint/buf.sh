#!/usr/bin/env bash
# Lints the protocol buffers with buf, and compares the public API with api_baseline.binpb. A field that was removed, or
# has another number or type, is an error. buf is from npm, kept outside the source tree. Exit code 77: no npm.
#
#   tests/lint/buf.sh             lints and compares
#   tests/lint/buf.sh --accept    makes the present API the new baseline: after a release, or for additions
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
buf=$tools/node_modules/.bin/buf
baseline=../tests/lint/api_baseline.binpb
if [[ ${1:-} == --accept ]]; then
  "$buf" build --exclude-source-info --path tandem/v1 -o "$baseline"
  exit
fi
"$buf" lint
"$buf" breaking --path tandem/v1 --against "$baseline"
# A comparison that finds nothing in a changed API proves nothing.
changed=$(mktemp -d)
trap 'rm -rf -- "$changed"' EXIT
cp -r . "$changed"
sed -i 's/string request_id = 2;/string request_id = 9;/' "$changed/tandem/v1/job_service.proto"
baseline=$(realpath "$baseline")
code=0
(cd "$changed" && "$buf" breaking --path tandem/v1 --against "$baseline") >/dev/null 2>&1 || code=$?
if ((code != 100)); then
  echo "buf breaking does not see that a field has another number (exit code $code)" >&2
  exit 1
fi
echo "buf: clean, and compatible with the baseline"
