# shellcheck shell=bash
# Sourced: this machine's etcd member. Certificates and names come from the file that configures etcd itself.
#
# For tests: INFRA_ETCD_USER instead of 232:232, INFRA_ETCD_METRICS instead of the metrics address of etcd.

# shellcheck source-path=SCRIPTDIR/../lib source=aws.sh disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/aws.sh"

# shellcheck disable=SC2034 # for the scripts that source this file
{
  etcd_directory=$root/var/lib/etcd
  etcd_settings=$root/etc/etcd/etcd.env
  etcd_user=${INFRA_ETCD_USER:-232:232}
  etcd_state=$state/etcd-state
}
read_settings "$etcd_settings"
read_settings "$root/etc/infra/etcd-image.env"

# Without this file the volume was not checked, and etcd might write to the root disk.
read_etcd_state() {
  if [[ ! -s $etcd_state ]]; then
    say "$(basename "$0"): $etcd_state is missing"
    exit 1
  fi
  # shellcheck disable=SC2034 # for the scripts that source this file
  verdict=$(<"$etcd_state")
}

image_there() {
  local words
  docker image inspect "$INFRA_ETCD_IMAGE" >/dev/null 2>&1 && return 0
  words=$(docker pull --quiet "$INFRA_ETCD_IMAGE" 2>&1) && return 0
  reason=$(tail -n 1 <<<"$words")
  return 1
}

# Inside the member's own container, with a time limit: a command that hangs would hide the reason.
in_etcd() {
  local seconds=$1
  shift
  timeout "$seconds" docker exec etcd "$@"
}

etcdctl() {
  local seconds=$1
  shift
  need ETCD_TRUSTED_CA_FILE ETCD_CERT_FILE ETCD_KEY_FILE
  in_etcd "$((seconds + 5))" etcdctl --endpoints=https://127.0.0.1:2379 --command-timeout="${seconds}s" \
    --cacert="$ETCD_TRUSTED_CA_FILE" --cert="$ETCD_CERT_FILE" --key="$ETCD_KEY_FILE" "$@"
}

# What this member says of itself; it also answers without a quorum.
etcd_metrics() { curl --silent --fail --noproxy '*' --max-time 10 "${INFRA_ETCD_METRICS:-http://127.0.0.1:2381/metrics}"; }
