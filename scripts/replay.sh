#!/usr/bin/env bash
# Verifies every recorded journal: a good one has no finding, one called broken-* has some. Where
# broken.json notes a head hash for a file, verify is told of it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/qm-replay" ./cmd/qm-replay

wrong=0 count=0
while read -r journal; do
  count=$((count + 1))
  status=0
  head=$(sed -n "/\"file\": \"$(basename "$journal")\"/,/}/ s/.*\"head\": \"\(.*\)\".*/\1/p" testdata/journals/broken.json)
  "$dir/qm-replay" verify ${head:+--head "$head"} "$journal" >"$dir/out" 2>&1 || status=$?
  case $journal in */broken-*) want=1 ;; *) want=0 ;; esac
  if [ "$status" -eq "$want" ]; then
    echo "ok    $journal"
  else
    echo "FAIL  $journal: exit $status, want $want"
    sed 's/^/      /' "$dir/out"
    wrong=1
  fi
done < <(find testdata/journals -name '*.ndjson' | sort)
[ "$count" -gt 0 ] || { echo "replay: no journal in testdata/journals" >&2; exit 1; }
exit "$wrong"
