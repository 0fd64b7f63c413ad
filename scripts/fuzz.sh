#!/usr/bin/env bash
# Every fuzz target, one after the other, for FUZZTIME (30s) each.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
found=
while IFS=: read -r file declaration; do
  found=1
  target=$(sed -E 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/' <<<"$declaration")
  echo "fuzz: $target in $(dirname "$file")"
  go test "./$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-30s}"
done < <(grep -rE --include='*_test.go' '^func Fuzz[A-Za-z0-9_]*\(' . | sed 's|^\./||' | sort)
[ -n "$found" ] || { echo "fuzz: no fuzz target found" >&2; exit 1; }
