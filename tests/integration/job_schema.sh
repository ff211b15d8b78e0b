#!/usr/bin/env bash
# The schemas that `tandem schema` prints, in ajv and in yaml-language-server: examples are valid, wrong files are marked at the
# right place, and an editor offers and explains every field. npm's packages are kept in ~/.cache/tandem/npm. Exit code 77: no
# Node.js, or npm cannot fetch them.
cd "$(dirname "$0")"
source ./daemon.bash

npm_packages job_schema
PACKAGES=$packages/node_modules timeout 600 node job_schema/check.mjs "$tandem" "$scratch" "$here/../.." || die "see above"
