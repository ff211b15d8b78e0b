#!/usr/bin/env bash
# Tests the dashboard in a real Chromium (Debian's), on a real daemon with real jobs: dashboard/test.mjs. npm's packages
# are kept in ~/.cache/tandem/npm. TANDEM_WHOLE=1 breaks the connections 20 times instead of 2. Exit code 77: no
# Chromium, no Node.js, npm cannot fetch the packages, or the program was built without the page.
#
#   dashboard.sh               all cases
#   dashboard.sh --bench FILE  for an idle machine: measures the page's speed, and appends a line to FILE
cd "$(dirname "$0")"
source ./daemon.bash

command -v chromium >/dev/null || skip "chromium is not installed"
npm_packages dashboard
export SCRATCH=$scratch TANDEMD=$tandemd TANDEM=$tandem PACKAGES=$packages/node_modules
if [[ ${1:-} == --bench ]]; then
  node dashboard/bench.mjs "$(realpath -m -- "${2:?}")" || die "see above"
else
  code=0
  node dashboard/test.mjs || code=$?
  ((code != 77)) || skip "the program was built without the dashboard's page"
  ((code == 0)) || die "see above"
fi
