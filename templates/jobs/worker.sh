
# A worker beside parameter servers.
begin
await_peers "${1:-}"
if [ -n "${INFRA_TF_CLUSTER:-}" ]; then
  # The first is the chief; the others are numbered without it.
  if [ "$index" = 0 ]; then
    task='{"type":"chief","index":0}'
  else
    task='{"type":"worker","index":'$((index - 1))'}'
  fi
  export TF_CONFIG="{\"cluster\":$INFRA_TF_CLUSTER,\"task\":$task}"
  # Workers of ParameterServerStrategy serve their chief and never end by themselves.
  last_wait=${INFRA_LAST_WAIT:-60}
fi
run "$@"
conclude
