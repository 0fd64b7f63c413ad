#!/usr/bin/env bash
# Everything that is made from something else: generated code, and the golden files of packages whose
# tests take -update. Look at the diff before you commit it: a changed event golden breaks a contract.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
go generate ./...
while read -r package; do
  go test "./$package" -count=1 -update
done < <(grep -rlE --include='*_test.go' 'flag\.Bool(Var)?\(.*"update"' . | xargs -r -n 1 dirname | sort -u | sed 's|^\./||')
git status --short
