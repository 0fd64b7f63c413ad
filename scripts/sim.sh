#!/usr/bin/env bash
# The long simulation: many more random histories with faults than "make test" tries.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
checks=${CHECKS:-5000}

# Only packages that use rapid know its flags.
mapfile -t packages < <(grep -rlE --include='*_test.go' '^func Test\w*Sim' engine 2>/dev/null | xargs -r grep -l 'pgregory.net/rapid' |
  xargs -r -n 1 dirname | sort -u | sed 's|^|./|')
[ "${#packages[@]}" -gt 0 ] || { echo "sim: no simulation found in engine" >&2; exit 1; }
go test "${packages[@]}" -run Sim -count=1 -timeout 0 -rapid.checks="$checks" "$@"
