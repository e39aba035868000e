#!/bin/bash
# What the scripts of an etcd member ask of docker, and nothing else: a container is a process with the mounts, the user and the
# environment it would have there.
set -euo pipefail
main=/run/docker-etcd.pid

refuse() {
  echo "docker: unknown here: $*" >&2
  exit 125
}

# Debian's etcd has no etcdutl; its etcdctl still did that work, but knows nothing of revisions that jump ahead.
program() {
  local word skip=no
  if [[ $1 == etcdutl && -x /usr/bin/etcdutl ]]; then
    words=("$@")
    return
  fi
  case $1 in
  etcd | etcdctl) words=("$@") ;;
  etcdutl)
    words=(etcdctl)
    for word in "${@:2}"; do
      case $word in
      --mark-compacted) ;;
      --bump-revision) skip=yes ;;
      *)
        if [[ $skip == yes ]]; then skip=no; else words+=("$word"); fi
        ;;
      esac
    done
    ;;
  *) refuse "$@" ;;
  esac
}

case ${1-} in
rm)
  [[ "$*" == 'rm --force etcd' ]] || refuse "$@"
  rm -f "$main"
  ;;
image)
  [[ "$*" == "image inspect registry.k8s.io/etcd:"* ]] || refuse "$@"
  ;;
exec)
  [[ $2 == etcd ]] || refuse "$@"
  shift 2
  program "$@"
  if [[ ! -e $main ]] || ! kill -0 "$(<"$main")" 2>/dev/null; then
    echo 'Error response from daemon: No such container: etcd' >&2
    exit 1
  fi
  exec nsenter --target "$(<"$main")" --mount -- \
    setpriv --reuid 232 --regid 232 --clear-groups --bounding-set=-all --no-new-privs \
    env -i PATH=/usr/bin ETCDCTL_API=3 "${words[@]}"
  ;;
run)
  shift
  name='' network='' user='' files=() volumes=() locked=no
  while [[ $1 == --* ]]; do
    case $1 in
    --rm) shift ;;
    --read-only)
      locked=yes
      shift
      ;;
    --name | --network | --user | --env-file | --volume)
      case $1 in
      --name) name=$2 ;;
      --network) network=$2 ;;
      --user) user=$2 ;;
      --env-file) files+=("$2") ;;
      --volume) volumes+=("$2") ;;
      esac
      shift 2
      ;;
    --ulimit | --log-driver | --cap-drop | --security-opt) shift 2 ;;
    *) refuse "$@" ;;
    esac
  done
  [[ $1 == registry.k8s.io/etcd:* && $user == *:* ]] || refuse "$@"
  shift
  program "$@"
  case $network in
  host) spaces=(--mount) ;;
  none) spaces=(--mount --net) ;;
  *) refuse "network $network" ;;
  esac
  # As docker reads it: everything behind the first "=", with quotes and blanks.
  environment=(PATH=/usr/bin ETCDCTL_API=3)
  for file in "${files[@]}"; do
    while IFS= read -r line; do
      [[ $line == '' || $line == '#'* ]] || environment+=("$line")
    done <"$file"
  done
  if [[ $name == etcd ]]; then
    echo $$ >"$main"
  fi
  export locked user mounts="${volumes[*]}"
  # shellcheck disable=SC2016
  exec unshare "${spaces[@]}" bash -euc '
    for volume in $mounts; do
      IFS=: read -r from to how <<<"$volume"
      mkdir -p "$to"
      mount --bind "$from" "$to"
      [[ $how != ro ]] || mount -o remount,bind,ro "$to"
    done
    [[ $locked == no ]] || mount -o remount,bind,ro /
    exec setpriv --reuid "${user%:*}" --regid "${user#*:}" --clear-groups --bounding-set=-all --no-new-privs env -i "$@"
  ' docker "${environment[@]}" "${words[@]}"
  ;;
*) refuse "$@" ;;
esac
