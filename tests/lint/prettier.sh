#!/usr/bin/env bash
# Checks the form of all JavaScript with Prettier and .prettierrc.json. Prettier is from npm, kept outside the source
# tree. Exit code 77: no npm.
#
#   tests/lint/prettier.sh          lists files of another form
#   tests/lint/prettier.sh --write  gives all files the form
set -euo pipefail
cd "$(dirname "$0")/../.."
version=3.10.1
tools="$HOME/.cache/tandem/npm/prettier-$version"
if [[ ! -x $tools/node_modules/.bin/prettier ]]; then
  command -v npm >/dev/null || {
    echo "npm is not installed"
    exit 77
  }
  mkdir -p "$tools"
  npm install --silent --no-fund --no-audit --prefix "$tools" "prettier@$version" >/dev/null || {
    echo "npm cannot install prettier@$version"
    exit 77
  }
fi
git ls-files -z "*.js" | xargs -0 "$tools/node_modules/.bin/prettier" "${1:---check}"
