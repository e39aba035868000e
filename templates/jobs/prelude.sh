# Runs in any image that has a POSIX shell.
set -eu

say() { printf 'infra: %s\n' "$*" >&2; }

# Trying again cannot help: the Job ends instead of starting another pod.
misconfigured() {
  say "$*"
  exit 64
}

pause=${INFRA_PAUSE:-2}
patience=${INFRA_PEER_TIMEOUT:-1800}

# await WHAT COMMAND...: waits until the command succeeds, and gives up after a while.
await() {
  what=$1
  shift
  give_up=$(($(date +%s) + patience))
  told=
  until "$@"; do
    if [ -z "$told" ]; then
      say "waiting for $what"
      told=yes
    fi
    if [ "$(date +%s)" -ge "$give_up" ]; then
      say "gave up waiting for $what after $patience s"
      exit 1
    fi
    sleep "$pause"
  done
}

# address_of NAME: prints the address that a name has now; names of pods come and go with them.
address_of() {
  case $1 in
  *[!0-9.]*) ;;
  *)
    echo "$1"
    return
    ;;
  esac
  if command -v getent >/dev/null 2>&1; then
    getent ahostsv4 "$1" | {
      read -r address _ || return 1
      echo "$address"
    }
  else
    python3 -c 'import socket, sys; print(socket.gethostbyname(sys.argv[1]))' "$1" 2>/dev/null
  fi
}

has_address() { [ -n "$(address_of "$1")" ]; }

# Processes that must not outlive this one.
children=
forget_children() {
  for child in $children; do kill "$child" 2>/dev/null || true; done
}
trap forget_children EXIT
# Kubernetes asks first; a shell that is process 1 would not listen.
trap 'exit 143' TERM INT
