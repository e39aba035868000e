
# One node of torchrun. Older versions fail at once if a name does not resolve yet, and all give up when a peer joins too late, so the
# first waits until every pod has its name.
begin
case ${1##*/} in python*) resolver=$1 ;; esac
if [ "$index" = 0 ]; then
  for peer in $(echo "${INFRA_PEERS:-}" | tr , ' '); do await_name "$peer"; done
else
  await_name "$PET_MASTER_ADDR"
fi
leave_if_late
seconds=604800
[ -z "${INFRA_DEADLINE:-}" ] || seconds=$((INFRA_DEADLINE - $(now)))
case ${PET_RDZV_CONF:-} in
timeout=* | *,timeout=*) ;;
*) export PET_RDZV_CONF="${PET_RDZV_CONF:+$PET_RDZV_CONF,}timeout=$((seconds > 0 ? seconds : 1))" ;;
esac
# Its own processes have half a minute to save otherwise; read since PyTorch 2.12. torchrun ends a little before it would be killed.
export TORCH_ELASTIC_SHUTDOWN_TIMEOUT="${TORCH_ELASTIC_SHUTDOWN_TIMEOUT:-$((stop_seconds > 4 ? stop_seconds - 3 : 1))}"
run "$@"
conclude
