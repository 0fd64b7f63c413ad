# Starts a PostgreSQL and a Valkey of our own on free ports of the loopback. To be sourced.
#
#   servers_start DIR durable|volatile   sets POSTGRES_URL and VALKEY_URL; files go to DIR/postgres, DIR/valkey
#   servers_stop                         ends both; to be called from a trap, so that it happens on failure too
#
# shellcheck shell=bash

postgres_pid= valkey_pid=

# Postgres refuses to run as root, so root's servers drop to the distribution's postgres user.
server_user=
if [ "$(id -u)" -eq 0 ]; then
  server_user=postgres
  id "$server_user" >/dev/null 2>&1 || server_user=nobody
fi

# Puts the command into the place of the shell, so that a job's process id is the server's own. The
# session of its own matters at an interrupt from the terminal, which then ends what uses the servers
# first, and our trap ends them.
become_server() {
  if [ -n "$server_user" ]; then
    exec setpriv --reuid="$server_user" --regid="$(id -g "$server_user")" --init-groups setsid "$@"
  fi
  exec setsid "$@"
}
as_server() { (become_server "$@"); }

fail() {
  echo "$(basename "$0"): $*" >&2
  exit 1
}

# The directory of initdb and postgres: the newest of Debian's, else what is on PATH.
postgres_programs() {
  local found
  found=$(compgen -G '/usr/lib/postgresql/*/bin/initdb' | sort -V | tail -n 1) || true
  [ -n "$found" ] || found=$(readlink -f "$(command -v initdb || true)")
  [ -n "$found" ] || fail "no PostgreSQL found: run scripts/deps.sh as root"
  dirname "$found"
}

answers() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# A port below the range of outgoing connections on which nobody listens.
free_port() {
  local port
  while port=$((12000 + (RANDOM * 32768 + RANDOM) % 20000)) && answers "$port"; do :; done
  echo "$port"
}

# wait_for NAME PID LOG COMMAND... waits for COMMAND to succeed, as long as the server lives.
wait_for() {
  local name=$1 pid=$2 log=$3 deadline=$((SECONDS + 60))
  shift 3
  until "$@" >/dev/null 2>&1; do
    if ! kill -0 "$pid" 2>/dev/null || [ "$SECONDS" -ge "$deadline" ]; then
      tail -n 20 "$log" >&2
      fail "$name did not come up"
    fi
    sleep 0.05
  done
}

valkey_ready() {
  local reply
  exec 4<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'PING\r\n' >&4 && read -r -t 5 reply <&4 && [[ $reply == +PONG* ]]
}

servers_start() {
  local dir=$1 durability=$2 programs port options
  command -v valkey-server >/dev/null || fail "no valkey-server found: run scripts/deps.sh as root"
  programs=$(postgres_programs)
  mkdir -p "$dir/postgres" "$dir/valkey"
  if [ -n "$server_user" ]; then
    chown "$server_user" "$dir/postgres" "$dir/valkey"
    as_server test -w "$dir/postgres" ||
      fail "user $server_user cannot enter $dir: name another place (make up RUN_DIR=...) or do not run as root"
  fi

  if [ ! -s "$dir/postgres/data/PG_VERSION" ]; then
    as_server "$programs/initdb" --pgdata="$dir/postgres/data" --username=qm --auth=trust \
      --encoding=UTF8 --locale=C --no-instructions $([ "$durability" = durable ] || echo --no-sync) \
      >"$dir/initdb.log" 2>&1 || { cat "$dir/initdb.log" >&2; fail "initdb failed"; }
  fi
  options=(-c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=300 -c shared_buffers=64MB)
  [ "$durability" = durable ] || options+=(-c fsync=off -c full_page_writes=off)

  port=$(free_port)
  become_server "$programs/postgres" -D "$dir/postgres/data" -p "$port" "${options[@]}" \
    >"$dir/postgres.log" 2>&1 </dev/null &
  postgres_pid=$!
  wait_for PostgreSQL "$postgres_pid" "$dir/postgres.log" \
    "$programs/pg_isready" --quiet --host=127.0.0.1 --port="$port" --username=qm --dbname=postgres
  POSTGRES_URL="postgres://qm@127.0.0.1:$port/postgres?sslmode=disable"

  # Valkey keeps nothing: whatever is in it is rebuilt from the journal.
  port=$(free_port)
  become_server valkey-server --bind 127.0.0.1 --port "$port" --dir "$dir/valkey" --save '' --appendonly no \
    --maxmemory-policy noeviction >"$dir/valkey.log" 2>&1 </dev/null &
  valkey_pid=$!
  wait_for Valkey "$valkey_pid" "$dir/valkey.log" valkey_ready "$port"
  VALKEY_URL="redis://127.0.0.1:$port"
}

servers_stop() {
  local pid deadline=$((SECONDS + 20))
  [ -z "$valkey_pid" ] || kill -TERM "$valkey_pid" 2>/dev/null || true
  [ -z "$postgres_pid" ] || kill -INT "$postgres_pid" 2>/dev/null || true
  for pid in $valkey_pid $postgres_pid; do
    while kill -0 "$pid" 2>/dev/null && [ "$SECONDS" -lt "$deadline" ]; do sleep 0.05; done
    kill -KILL "$pid" 2>/dev/null || true
    wait "$pid" 2>/dev/null || true
  done
  postgres_pid= valkey_pid=
}
