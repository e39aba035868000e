
# One node of torchrun. Older versions fail at once if a name does not resolve yet, and all give up when a peer joins too late, so the
# first waits until every pod has its name.
begin
if [ "$index" = 0 ]; then
  await_peers "$1"
else
  INFRA_PEERS=$PET_MASTER_ADDR
  await_peers "$1"
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
trained=
# torchrun waits up to five minutes for other pods when its own processes have succeeded. One that failed meanwhile never comes, and does
# not change that the job is complete when the first pod has succeeded.
check() {
  [ -n "$scratch" ] && [ -e "$INFRA_PROGRAM_SUCCEEDED" ] || return 0
  if [ -z "$trained" ]; then
    trained=yes
    succeed
  fi
  [ "$index" = 0 ] || return 0
  set -- "$marks/failed.$attempt.$role".*
  [ -e "$1" ] || return 0
  say "the program succeeded; torchrun would wait for $role ${1##*.}, which failed, and is ended"
  end_program
}
! make_scratch || export INFRA_PROGRAM_SUCCEEDED="$scratch/succeeded"
run "$@"
[ -z "$trained" ] || status=0
conclude
