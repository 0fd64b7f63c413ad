#!/usr/bin/env bash
# Installs the real parts that the tests run against, and only those that are missing: PostgreSQL,
# Valkey, Chromium, the C compiler of the race detector, the proxies and runtimes that connectors
# live in (nginx, Caddy, Node, PHP) and promtool, from the distribution (Debian 12 and 13); and what
# testdata/npm/package.json names, from npm.
#
# A part counts as present when its program is found or, for the two servers, when
# QM_TEST_POSTGRES_URL or QM_TEST_VALKEY_URL names one that runs elsewhere.
set -euo pipefail

have_postgres() {
  [ -n "${QM_TEST_POSTGRES_URL:-}" ] && return
  command -v initdb >/dev/null && command -v postgres >/dev/null && return
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null
}
have_valkey() { [ -n "${QM_TEST_VALKEY_URL:-}" ] || command -v valkey-server >/dev/null; }
have_compiler() { command -v gcc >/dev/null || command -v cc >/dev/null; }
have_chromium() { command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null; }

have() { command -v "$1" >/dev/null || [ -x "/usr/sbin/$1" ]; }

# What the tests take from npm, as the lock file has it. It is installed anew when that has changed.
npm_parts() {
  cd "$(dirname "${BASH_SOURCE[0]}")/../testdata/npm"
  cmp -s package-lock.json node_modules/.installed-lock && return
  echo "deps: installing the packages of testdata/npm" >&2
  npm ci --ignore-scripts --loglevel=error >&2
  cp package-lock.json node_modules/.installed-lock
}

missing=()
have_postgres || missing+=(postgresql)
have_valkey || missing+=(valkey-server)
have_chromium || missing+=(chromium chromium-headless-shell) # the second is the same engine, and quicker to test with
have_compiler || missing+=(gcc libc6-dev)
have nginx || missing+=(nginx)
have caddy || missing+=(caddy)
have node || missing+=(nodejs)
have npm || missing+=(npm)
have php || missing+=(php-cli)
have promtool || missing+=(prometheus)
if [ "${#missing[@]}" -eq 0 ]; then
  npm_parts
  exit
fi

refuse() {
  echo "deps: $*" >&2
  exit 1
}

# In a subshell, so that its many variables do not become ours.
distribution=$([ -r /etc/os-release ] && . /etc/os-release && echo "${ID:-}:${VERSION_CODENAME:-}" || true)
codename=${distribution#*:}
if [ "${distribution%%:*}" != debian ] || ! command -v apt-get >/dev/null; then
  refuse "install ${missing[*]} with your system's package manager, or set QM_TEST_POSTGRES_URL and QM_TEST_VALKEY_URL"
fi
backport=
[ "$codename" = bookworm ] && backport=" (valkey-server comes from bookworm-backports)"
if [ "$(id -u)" -ne 0 ]; then
  refuse "install as root: apt-get install ${missing[*]}${backport}, or run scripts/deps.sh as root"
fi

export DEBIAN_FRONTEND=noninteractive
own_policy=
backports_list=/etc/apt/sources.list.d/qm-backports.sources

# The packages start their servers when they are installed, on ports that may be taken. We start our
# own on ports of our own, so nothing is started now, and nothing at the next boot either.
if [ ! -e /usr/sbin/policy-rc.d ]; then
  printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
  chmod 755 /usr/sbin/policy-rc.d
  own_policy=1
fi
cleanup() {
  if [ -n "$own_policy" ]; then rm -f /usr/sbin/policy-rc.d; fi
}
trap cleanup EXIT

apt() { apt-get -o Dpkg::Use-Pty=0 -qq -y "$@" </dev/null; }

# Debian 12 has Valkey in its backports suite alone. It is taken from the mirror that this machine
# already uses for the suite itself, and checked with Debian's own keys.
add_backports() {
  local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg
  mirror=$(apt-get indextargets --format '$(CODENAME) $(COMPONENT) $(REPO_URI)' 'Created-By: Packages' |
    awk -v suite="$codename" '$1 == suite && $2 == "main" && !found { print $3; found = 1 }')
  [ -n "$mirror" ] || refuse "no mirror for $codename in apt's sources: add $codename-backports by hand and run this again"
  {
    echo "Types: deb"
    echo "URIs: $mirror"
    echo "Suites: $codename-backports"
    echo "Components: main"
    if [ -r "$keys" ]; then echo "Signed-By: $keys"; fi
  } >"$backports_list"
}

echo "deps: installing ${missing[*]}" >&2
plain=() backported=()
for part in "${missing[@]}"; do
  if [ "$part" = valkey-server ] && [ "$codename" = bookworm ]; then backported+=("$part"); else plain+=("$part"); fi
done
[ "${#backported[@]}" -eq 0 ] || add_backports
if ! apt update >/dev/null; then
  rm -f "$backports_list" # A source that cannot be read would stop apt for everybody else too.
  refuse "apt-get update failed: check the mirror, then install ${missing[*]}${backport}"
fi
[ "${#plain[@]}" -eq 0 ] || apt install --no-install-recommends "${plain[@]}" >/dev/null
[ "${#backported[@]}" -eq 0 ] || apt install --no-install-recommends -t "$codename-backports" "${backported[@]}" >/dev/null

if command -v systemctl >/dev/null; then
  for part in "${missing[@]}"; do
    case $part in postgresql | valkey-server | nginx | caddy | prometheus) systemctl disable --quiet "$part" 2>/dev/null || true ;; esac
  done
fi

have_postgres || refuse "postgresql is installed but initdb is not found"
have_valkey || refuse "valkey-server is installed but not found"
have_chromium || refuse "chromium is installed but not found"
npm_parts
