#!/usr/bin/env bash
# Checks that the daemon and its workers, the command line and the changelog name the same version. client/ and server/
# share no code that could have it.
set -euo pipefail
cd "$(dirname "$0")/../.."
read_constant() { sed -nE 's/.*kVersion\[\] = "([^"]+)".*/\1/p' "$1"; }
daemon=$(read_constant engine/base/version.h)
client=$(read_constant client/cli/version.h)
changelog=$(sed -nE 's/^## ([0-9.]+).*/\1/p' CHANGELOG.md | head -n 1)
if [[ -z $daemon || $daemon != "$client" || $daemon != "$changelog" ]]; then
  echo "versions differ: engine/base/version.h '$daemon', client/cli/version.h '$client', CHANGELOG.md '$changelog'"
  exit 1
fi
echo "version $daemon"
