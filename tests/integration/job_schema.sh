#!/usr/bin/env bash
# The schemas that `tandem schema` prints, in ajv and in yaml-language-server: examples are valid, wrong files are marked at the
# right place, and an editor offers and explains every field. npm's packages are kept in ~/.cache/tandem/npm. Exit code 77: no
# Node.js, or npm cannot fetch them.
cd "$(dirname "$0")"
source ./daemon.bash

command -v node >/dev/null || skip "node is not installed"
packages=$HOME/.cache/tandem/npm/job-schema-$(sha256sum job_schema/package-lock.json | cut -c 1-16)
if [[ ! -e $packages/complete ]]; then
  command -v npm >/dev/null || skip "npm is not installed"
  mkdir -p "$packages"
  cp job_schema/package.json job_schema/package-lock.json "$packages"
  npm ci --silent --no-fund --no-audit --ignore-scripts --prefix "$packages" >/dev/null || skip "npm cannot fetch the packages"
  touch "$packages/complete"
fi
PACKAGES=$packages/node_modules timeout 300 node job_schema/check.mjs "$tandem" "$scratch" "$here/../.." || die "see above"
