# shellcheck shell=bash
# Sourced by every script: console messages, retries with a deadline, settings files, state files.
#
# For tests:
#   INFRA_ROOT                  prefix of every path of the machine
#   INFRA_CONSOLE               instead of /dev/console
#   INFRA_BACKOFF_MILLISECONDS  the first pause between retries (1000); the longest is 15 times that
#   INFRA_DEADLINE_SECONDS      instead of the script's own deadline

# shellcheck disable=SC2034 # for the scripts that source this file
bin=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../bin
root=${INFRA_ROOT:-}
state=$root/run/infra
console=${INFRA_CONSOLE:-/dev/console}
reason=''

# To standard error, because the standard output of functions is data; and to the console, which GetConsoleOutput shows when nobody can log in.
say() {
  local line="infra: $*"
  line=${line//[[:cntrl:]]/ }
  printf '%s\n' "$line" >&2
  if [[ -w $console ]]; then
    printf '%s\n' "$line" 2>/dev/null >>"$console" || true
  fi
}

# A monotonic clock: it does not jump when the time is set during boot.
read_clock() {
  local up
  read -r up _ </proc/uptime
  clock=$((10#${up/./} * 10))
}

# retry_until DEADLINE_SECONDS WHAT COMMAND...
# The command returns 0 (done), 1 (not yet) or more (permanent failure), and sets $reason.
# Returns 0, 1 after the deadline, or the command's own code for a permanent failure; $reason explains it.
retry_until() {
  local deadline=$1 what=$2 pause=${INFRA_BACKOFF_MILLISECONDS:-1000} status said='' nap end longest
  shift 2
  longest=$((pause * 15))
  read_clock
  end=$((clock + deadline * 1000))
  while true; do
    reason=''
    status=0
    "$@" || status=$?
    if ((status != 1)); then
      return "$status"
    fi
    read_clock
    if ((clock >= end)); then
      reason="$what: not within $deadline s${reason:+; last: $reason}"
      return 1
    fi
    if [[ $said != "waiting:$reason" ]]; then
      say "waiting for $what${reason:+: $reason}"
      said="waiting:$reason"
    fi
    # Jitter, so that machines that started together do not call together.
    nap=$((pause / 2 + RANDOM % (pause / 2 + 1)))
    nap=$((nap < end - clock ? nap : end - clock))
    sleep "$((nap / 1000)).$(printf '%03d' $((nap % 1000)))"
    pause=$((pause * 2 < longest ? pause * 2 : longest))
  done
}

# Reads KEY=value lines without evaluating them. Variables that are already set win.
read_settings() {
  local line name
  [[ -e $1 ]] || return 0
  while IFS= read -r line || [[ -n $line ]]; do
    [[ $line =~ ^[A-Z][A-Z0-9_]*= ]] || continue
    name=${line%%=*}
    if [[ -z ${!name+set} ]]; then
      export "$name=${line#*=}"
    fi
  done <"$1"
}

need() {
  local name
  for name in "$@"; do
    if [[ -z ${!name:-} ]]; then
      say "$(basename "$0"): $name is not set"
      exit 1
    fi
  done
}

# The content comes on standard input; readers see the old file or the new one.
write_file() {
  mkdir -p "$(dirname "$1")"
  cat >"$1.new"
  mv -f "$1.new" "$1"
}

# Ends the script: prints the reason on the console and signals FAILURE to CloudFormation.
give_up() {
  say "$(basename "$0") failed: $*"
  "$bin/signal-stack" FAILURE "$*" || true
  exit 1
}

read_settings "${INFRA_STACK_ENV:-$root/etc/infra/stack.env}"
