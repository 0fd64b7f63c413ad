#!/usr/bin/env bash
# Everything that is made from something else: what go:generate lines make, and the golden files of
# packages whose tests take -update without such a line. Look at the diff before you commit it: a
# changed event golden breaks a contract.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go generate ./...
while read -r package; do
  grep -qs '^//go:generate' "$package"/*.go && continue
  go test "./$package" -count=1 -update
done < <(grep -rlE --include='*_test.go' 'flag\.Bool(Var)?\(.*"update"' . | xargs -r -n 1 dirname | sort -u | sed 's|^\./||')
git status --short
