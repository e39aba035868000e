# Every launcher begins with this. It runs in any image that has a POSIX shell: starts the program, keeps what it prints on the claim,
# and ends the pod as the program ended.
# shellcheck disable=SC2329 # no launcher needs all functions
set -eu

pause=${INFRA_PAUSE:-2}
grace=${INFRA_GRACE:-30}
# The rest of the grace period is for the launcher itself.
stop_seconds=$((grace > 6 ? grace - 5 : 1))
patience=${INFRA_PEER_TIMEOUT:-}
last_wait=${INFRA_LAST_WAIT:-300}
log_limit=${INFRA_LOG_LIMIT:-67108864}
most_restarts=${INFRA_MOST_RESTARTS:-500}
attempt=${INFRA_ATTEMPT:-0}
role=${INFRA_ROLE:-worker}
index=${JOB_COMPLETION_INDEX:-0}
replicas=${INFRA_REPLICAS:-1}
group=${INFRA_GROUP_SIZE:-1}

marks=
log=
title=
scratch=
pipe=
copier=
program=
collected=
beside=
status=0
killed=
answered=
complained=
resolver=python3

say() {
  printf 'infra: %s\n' "$*" >&2
  [ -z "$log" ] || { printf 'infra: %s\n' "$*" >>"$log"; } 2>/dev/null || true
}

# misconfigured WHY: a retry cannot help, so the job fails instead of being restarted.
misconfigured() {
  say "$*"
  exit 64
}

now() { date +%s; }

is_late() { [ -n "${INFRA_DEADLINE:-}" ] && [ "$(now)" -ge "$INFRA_DEADLINE" ]; }
leave_if_late() { ! is_late || misconfigured "the deadline has passed${1:+ while waiting for $1}"; }

# nap: waits for a moment, and does what has to be done now and then. A signal ends it at once.
nap() {
  sleep "$pause" &
  wait "$!" || true
  answer
  trim_log
}

# await WHAT COMMAND...: waits until the command succeeds. To wait for machines is no failure, so only the deadline ends it, or the
# limit that the user set.
await() {
  what=$1
  shift
  since=$(now)
  told=
  until "$@"; do
    leave_if_late "$what"
    if [ -z "$told" ]; then
      say "waiting for $what"
      told=yes
    fi
    if [ -n "$patience" ] && [ $(($(now) - since)) -ge "$patience" ]; then
      say "gave up waiting for $what after $patience s"
      exit 1
    fi
    nap
  done
}

can_resolve() { command -v getent >/dev/null 2>&1 || command -v "$resolver" >/dev/null 2>&1; }

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
    "$resolver" -c 'import socket, sys; print(socket.gethostbyname(sys.argv[1]))' "$1" 2>/dev/null
  fi
}

has_address() { [ -n "$(address_of "$1")" ]; }

# is_met HOST: whether the name of a peer resolves, or the peer has succeeded and needs no name any more.
is_met() {
  ! has_address "$1" || return 0
  # JOB-ROLE-0-NUMBER.DOMAIN
  peer=${1%%.*}
  peer_role=${peer%-*-*}
  [ -e "$marks/done.${peer_role##*-}.${peer##*-}" ]
}

# await_peers PROGRAM: waits until every pod of the group has its name, in images that can find out.
await_peers() {
  case ${1##*/} in python*) resolver=$1 ;; esac
  can_resolve || return 0
  for host in $(echo "${INFRA_PEERS:-}" | tr , ' '); do await "the name $host" is_met "$host"; done
}

# mark NAME: leaves a mark for the other pods of the job, with the number of the attempt in it.
mark() {
  { echo "$attempt" >"$marks/$1"; } 2>/dev/null && return
  [ -n "$complained" ] || say "cannot write to $marks: the other pods do not learn how this one ends"
  complained=yes
}

# is_done NUMBER: whether that pod of this role has succeeded in this attempt.
is_done() {
  said=
  { read -r said <"$marks/done.$role.$1"; } 2>/dev/null || return 1
  [ "$said" = "$attempt" ]
}

# every_one COMMAND: whether the command succeeds for the numbers of all pods of this role.
every_one() {
  number=0
  while [ "$number" -lt "$replicas" ]; do
    "$1" "$number" || return 1
    number=$((number + 1))
  done
}

# Whether that pod has succeeded in any attempt.
was_done() { [ -e "$marks/done.$role.$1" ]; }

# answer: a pod whose program failed waits to learn whether the launchers of all pods are still there.
answer() {
  [ -n "$marks" ] && [ -z "$answered" ] && [ "$group" -gt 1 ] || return 0
  set -- "$marks/failed.$attempt".*
  [ -e "$1" ] || return 0
  answered=yes
  mark "alive.$attempt.$role.$index"
}

# trim_log: what explains a failure is at the end of the log, so the file begins anew when it is too large.
trim_log() {
  [ -n "$pipe" ] || return 0
  # shellcheck disable=SC2012,SC2046 # a size without reading the file; find is not in every image
  set -- $(ls -dn "$log" 2>/dev/null)
  [ "${5:-0}" -gt "$log_limit" ] || return 0
  { cp "$log" "$log.1" && printf '%s\n' "$title" >"$log"; } 2>/dev/null || true
}

open_log() {
  [ -n "${INFRA_LOG_DIR:-}" ] || return 0
  directory=$INFRA_LOG_DIR/attempt-$attempt/$role-$index
  title="infra: run ${INFRA_RUN:-unnamed}, attempt $attempt, $role $index, $(date -u +%Y-%m-%dT%H:%M:%SZ)"
  if { mkdir -p "$directory" && printf '%s\n' "$title" >>"$directory/output.log"; } 2>/dev/null; then
    log=$directory/output.log
  else
    say "cannot write to $directory/output.log: what the program prints is in the pod's log only"
  fi
}

# check_settings: `lint` reads those of the job file; an image or a Secret may set them too.
check_settings() {
  for setting in INFRA_PEER_TIMEOUT INFRA_HOLD INFRA_LAST_WAIT INFRA_LOG_LIMIT INFRA_MOST_RESTARTS; do
    value=
    eval "value=\${$setting:-0}"
    case $value in
    *[!0-9]* | 0?* | ????????????????*) misconfigured "$setting is '$value', which is not a number: write a whole number, or remove it" ;;
    esac
  done
}

# leave_if_endless: restarts after lost machines and evictions are not counted, so nothing else ends a job whose pods fill the disk again
# and again.
leave_if_endless() {
  [ "$attempt" -le "$most_restarts" ] ||
    misconfigured "the group was restarted $attempt times, at most $most_restarts are allowed: its machines are lost, or its pods evicted, again and again"
}

# begin: what every launcher does first.
begin() {
  marks=${INFRA_MARK_DIR:?}
  open_log
  check_settings
  if every_one was_done; then
    say "all $role pods of this job have succeeded before: nothing is left to do"
    exit 0
  fi
  leave_if_late
  leave_if_endless
  # A group that was suspended comes back under the same attempt.
  rm -f "$marks/failed.$attempt.$role.$index" "$marks/alive.$attempt.$role.$index" 2>/dev/null || true
  ! is_done "$index" || rm -f "$marks/done.$role.$index" 2>/dev/null || true
}

# make_scratch: a directory of this pod that any user can write to.
make_scratch() {
  [ -z "$scratch" ] || return 0
  for place in /dev/shm "${TMPDIR:-/tmp}" /var/tmp "$PWD"; do
    scratch=$place/infra.$$.$(now)
    ! mkdir "$scratch" 2>/dev/null || return 0
  done
  scratch=
  return 1
}

# signal NAME: to the program and, if it has a process group of its own, to all processes of that; and to what runs beside it.
signal() {
  if [ -n "$program" ]; then
    kill "-$1" "-$program" 2>/dev/null || kill "-$1" "$program" 2>/dev/null || true
  fi
  for process in $beside; do kill "-$1" "$process" 2>/dev/null || true; done
}

# is_running: whether the program, another process of its group or what runs beside it is left.
is_running() {
  if [ -n "$program" ]; then
    ! kill -0 "-$program" 2>/dev/null || return 0
    ! kill -0 "$program" 2>/dev/null || return 0
  fi
  for process in $beside; do ! kill -0 "$process" 2>/dev/null || return 0; done
  return 1
}

# start COMMAND...: starts the program; what it prints goes to the pod's log and to the claim.
start() {
  command -v "$1" >/dev/null 2>&1 || misconfigured "there is no program '$1' in this image"
  if [ -n "$log" ]; then
    if make_scratch && mkfifo "$scratch/output" 2>/dev/null && command -v tee >/dev/null 2>&1; then
      pipe=$scratch/output
    else
      say "cannot copy what the program prints to $log: it is in the pod's log only"
    fi
  fi
  # Programs that a shell script starts would never hear of a signal to the script alone.
  ! command -v setsid >/dev/null 2>&1 || set -- setsid "$@"
  if [ -n "$pipe" ]; then
    # Through a named pipe: the status of `program | tee` would be that of tee.
    tee -a "$log" <"$pipe" &
    copier=$!
    "$@" >"$pipe" 2>&1 &
  else
    "$@" &
  fi
  program=$!
}

# collect: puts the status of the program that ended into $status, and what it printed last into the logs.
collect() {
  if [ -n "$program" ] && [ -z "$collected" ]; then
    status=0
    wait "$program" || status=$?
    collected=yes
  fi
  # A process that the program left behind may keep the pipe open.
  give_up=$(($(now) + 5))
  while [ -n "$copier" ] && kill -0 "$copier" 2>/dev/null; do
    if [ "$(now)" -ge "$give_up" ]; then
      kill "$copier" 2>/dev/null || true
      break
    fi
    # Nearly always there is nothing left to copy. Not every sleep knows fractions.
    sleep 0.1 2>/dev/null || sleep 1
  done
  copier=
}

# end_program: asks the program to end, kills it if it does not in time, and collects its status.
end_program() {
  trap - CHLD
  signal TERM
  give_up=$(($(now) + stop_seconds))
  while is_running; do
    if [ "$(now)" -ge "$give_up" ]; then
      say "the program did not end within $stop_seconds s and is killed"
      killed=yes
      signal KILL
      break
    fi
    nap
  done
  collect
}

# What a launcher checks while the program runs; some have their own.
check() { :; }

# run COMMAND...: runs the program until it ends, and leaves its status in $status.
run() {
  leave_if_late
  start "$@"
  # The end of the program ends a nap.
  trap : CHLD
  while kill -0 "$program" 2>/dev/null; do
    if is_late; then
      say "the deadline has passed, so the program is asked to end"
      end_program
      misconfigured "the deadline has passed"
    fi
    check
    nap
  done
  trap - CHLD
  collect
}

# is_answered: whether all pods of the group have ended or are still there. If index 0 has succeeded, its end is the job's.
is_answered() {
  if [ "${INFRA_SUCCESS:-all}" = first ] && is_done 0; then return 1; fi
  set -- "$marks/alive.$attempt".*
  [ $# -ge "$group" ]
}

# fails_first: whether no other pod of the group has failed in this attempt.
fails_first() {
  set -- "$marks/failed.$attempt".*
  [ ! -e "$1" ]
}

# hold WHAT: a pod that fails at once because the machine of another was lost would be taken for the cause. So would one that fails
# because another has failed: the first of them ends first.
hold() {
  first=
  ! fails_first || first=yes
  mark "failed.$attempt.$role.$index"
  if [ "$group" -le 1 ]; then
    say "$1 exited with $status"
    return
  fi
  answered=yes
  mark "alive.$attempt.$role.$index"
  limit=${INFRA_HOLD:-180}
  say "$1 exited with $status; this pod waits up to $limit s, so that a lost machine is not counted as a failure of the program"
  give_up=$(($(now) + limit))
  until { [ -n "$first" ] && is_answered; } || is_late || [ "$(now)" -ge "$give_up" ]; do nap; done
}

# unfinished: prints the numbers of the other pods of this role that have not succeeded in this attempt.
unfinished() {
  number=1
  while [ "$number" -lt "$replicas" ]; do
    is_done "$number" || printf ' %s' "$number"
    number=$((number + 1))
  done
}

# await_last: when index 0 ends, the others are terminated, so they may write their last first. One that failed does not change that
# the job is complete; it holds its pod meanwhile.
await_last() {
  give_up=$(($(now) + last_wait))
  told=
  set -- "$marks/failed.$attempt.$role".*
  while left=$(unfinished) && [ -n "$left" ] && [ ! -e "$1" ]; do
    if [ -z "$told" ]; then
      say "the program succeeded; waiting up to $last_wait s for $role$left"
      told=yes
    fi
    if is_late || [ "$(now)" -ge "$give_up" ]; then
      say "the job is complete without waiting longer for $role$left"
      return
    fi
    nap
    set -- "$marks/failed.$attempt.$role".*
  done
}

succeed() {
  mark "done.$role.$index"
  [ "$group" -le 1 ] || mark "alive.$attempt.$role.$index"
}

# leave: ends the pod as the program ended. 255 is what the machine itself reports of containers that it finds dead after a power cut.
leave() { exit "$((status == 255 ? 1 : status))"; }

# conclude [WHAT]: ends the pod as the program ended.
conclude() {
  case $status in
  0)
    succeed
    if [ "${INFRA_SUCCESS:-all}" = first ] && [ "$index" = 0 ]; then await_last; fi
    ;;
  64) say "${1:-the program} exited with 64, which ends the job" ;;
  *) hold "${1:-the program}" ;;
  esac
  leave
}

# told_to_end: Kubernetes terminates this pod. A program that ended before gives the status; one that ends with 0 because it was asked
# to has not succeeded.
told_to_end() {
  trap '' TERM INT
  trap - CHLD
  answered=yes
  if [ -n "$program" ] && ! kill -0 "$program" 2>/dev/null; then
    collect
    [ "$status" != 0 ] || succeed
    leave
  fi
  say "this pod is being terminated"
  end_program
  if [ -n "$killed" ] || [ "$status" = 0 ]; then status=143; fi
  leave
}

clean_up() {
  trap '' TERM INT
  signal KILL
  [ -z "$copier" ] || kill "$copier" 2>/dev/null || true
  [ -z "$scratch" ] || rm -rf "$scratch"
}
trap clean_up EXIT
# A shell that is process 1 ignores these by default.
trap told_to_end TERM INT
