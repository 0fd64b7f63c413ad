#!/usr/bin/env bash
# Runs the server on a Postgres and a Valkey of its own. Data, logs and the signing secret are kept in
# RUN_DIR (.run), so that the next start finds every place in line again. Remove it to begin anew.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
scripts/deps.sh
. scripts/servers.sh

dir=${RUN_DIR:-.run}
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)
chmod 755 "$dir"
if [ ! -s "$dir/secret" ]; then
  (umask 077 && head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n' >"$dir/secret")
fi
go build -o "$dir/qm" ./cmd/qm

trap servers_stop EXIT
trap 'kill -TERM "${server_pid:-}" 2>/dev/null; wait "${server_pid:-}" 2>/dev/null; exit 130' INT TERM
servers_start "$dir" durable
echo "Postgres: $POSTGRES_URL" >&2
echo "Valkey:   $VALKEY_URL" >&2

STORE=valkey SIDESTORE=pg DATABASE_URL=$POSTGRES_URL VALKEY_URL=$VALKEY_URL SECRET=$(cat "$dir/secret") \
  QM_DEMO=${QM_DEMO-1} setsid "$dir/qm" "$@" &
server_pid=$!
wait "$server_pid"
