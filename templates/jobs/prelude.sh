# Runs in any image that has a POSIX shell.
set -eu

say() { printf 'infra: %s\n' "$*" >&2; }

# A retry cannot help: the Job fails instead of starting another pod.
misconfigured() {
  say "$*"
  exit 64
}

pause=${INFRA_PAUSE:-2}
patience=${INFRA_PEER_TIMEOUT:-1800}

# await WHAT COMMAND...: waits until the command succeeds, and fails after $patience seconds.
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

# address_of NAME: prints the current address of a name; a pod's name exists as long as the pod.
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

# all_marked KIND COUNT: whether all replicas have left their marker of this run.
all_marked() {
  number=0
  while [ "$number" -lt "$2" ]; do
    [ -e "$INFRA_RUN_DIR/$1.$number" ] || return 1
    number=$((number + 1))
  done
}

# delete_marks FILE...: deletes markers that other pods may be deleting at the same moment, which busybox' `rm -f` calls a failure.
delete_marks() {
  for marker; do
    rm -f "$marker" 2>/dev/null || [ ! -e "$marker" ] || rm -f "$marker"
  done
}

# begin_run ROLE: deletes the markers of an earlier Job of the same name and run.
begin_run() {
  mkdir -p "$INFRA_RUN_DIR"
  before=$(cat "$INFRA_RUN_DIR/job.$1" 2>/dev/null) || before=
  [ "$before" != "${INFRA_JOB_UID:-}" ] || return 0
  if [ -n "$before" ]; then
    delete_marks "$INFRA_RUN_DIR"/failed.* "$INFRA_RUN_DIR/failure.$1".*
    [ "$1" != worker ] || delete_marks "$INFRA_RUN_DIR"/done.*
  fi
  echo "${INFRA_JOB_UID:-}" >"$INFRA_RUN_DIR/job.$1"
}

# note_failure ROLE STATUS: counts failures as the Job does, and leaves a marker when it gives up, or the other role would wait for ever.
note_failure() {
  touch "$INFRA_RUN_DIR/failure.$1.$JOB_COMPLETION_INDEX.$(date +%s)"
  set -- "$1" "$2" "$INFRA_RUN_DIR/failure.$1".*
  if [ "$2" = 64 ] || [ $(($# - 2)) -gt "${INFRA_FAILURES_ALLOWED:-0}" ]; then
    touch "$INFRA_RUN_DIR/failed.$1"
  fi
}

# leave_if_failed ROLE: ends this pod for good if the other role has failed.
leave_if_failed() {
  [ ! -e "$INFRA_RUN_DIR/failed.$1" ] || misconfigured "the $1 pods of this job have failed for good, so this pod ends too"
}

# Processes that must not outlive this one. They may clean up, but not for longer than Kubernetes waits.
children=
end_children() {
  trap '' TERM INT
  for child in $children; do kill "$child" 2>/dev/null || true; done
  give_up=$(($(date +%s) + ${INFRA_GRACE:-20}))
  for child in $children; do
    while kill -0 "$child" 2>/dev/null; do
      if [ "$(date +%s)" -ge "$give_up" ]; then
        say "process $child did not stop when told to"
        kill -9 "$child" 2>/dev/null || true
        break
      fi
      sleep "$pause"
    done
  done
}
trap end_children EXIT
# Kubernetes sends SIGTERM first, which a shell that is process 1 ignores by default.
trap 'exit 143' TERM INT
