#!/usr/bin/env bash
# The whole suite against the real parts: installs what is missing, starts one Postgres and one
# Valkey for all packages, vets, and tests, under the race detector where goroutines live.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
command -v go >/dev/null || { echo "test: install Go 1.26 or newer" >&2; exit 1; }
scripts/deps.sh

if [ -z "${QM_TEST_POSTGRES_URL:-}" ] || [ -z "${QM_TEST_VALKEY_URL:-}" ]; then
  . scripts/servers.sh
  dir=$(mktemp -d)
  chmod 755 "$dir" # The servers' user has to pass through it.
  trap 'servers_stop; rm -rf "$dir"' EXIT
  trap 'exit 130' INT TERM
  servers_start "$dir" volatile
  export QM_TEST_POSTGRES_URL=${QM_TEST_POSTGRES_URL:-$POSTGRES_URL}
  export QM_TEST_VALKEY_URL=${QM_TEST_VALKEY_URL:-$VALKEY_URL}
fi

go vet ./...

# Where goroutines meet, the tests run once, under the race detector; everywhere else they run once
# without it. The core has no goroutine (internal/archtest holds that).
is_concurrent='^qm/(engine|httpapi|projection|journal)(/|$)'
mapfile -t concurrent < <(go list ./... | grep -E "$is_concurrent" | grep -v '^qm/engine/room$')
mapfile -t plain < <(go list ./... | grep -vE "$is_concurrent"; echo qm/engine/room)
status=0
go test -timeout 8m "${plain[@]}" || status=1
go test -race -timeout 8m "${concurrent[@]}" || status=1
exit "$status"
