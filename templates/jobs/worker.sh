
# A worker that leaves a marker for the parameter servers when it is done.
mark=$INFRA_RUN_DIR/done.$JOB_COMPLETION_INDEX
begin_run worker
mkdir -p "$INFRA_OUTPUT_DIR"
rm -f "$mark"
leads=
if [ -n "${INFRA_TF_CLUSTER:-}" ]; then
  # The first is the chief; the others are numbered without it.
  if [ "$JOB_COMPLETION_INDEX" = 0 ]; then
    task='{"type":"chief","index":0}'
  else
    leads=$INFRA_RUN_DIR/done.0
    task='{"type":"worker","index":'$((JOB_COMPLETION_INDEX - 1))'}'
  fi
  export TF_CONFIG="{\"cluster\":$INFRA_TF_CLUSTER,\"task\":$task}"
fi
"$@" &
worker=$!
children=$worker
give_up=
while kill -0 "$worker" 2>/dev/null; do
  leave_if_failed ps
  # Workers of ParameterServerStrategy serve their chief for ever.
  if [ -n "$leads" ] && [ -e "$leads" ]; then
    now=$(date +%s)
    [ -n "$give_up" ] || give_up=$((now + ${INFRA_CHIEF_GRACE:-60}))
    if [ "$now" -ge "$give_up" ]; then
      say "the chief is done, and so is this worker"
      end_children
      touch "$mark"
      exit 0
    fi
  fi
  sleep "$pause"
done
status=0
wait "$worker" || status=$?
if [ "$status" != 0 ]; then
  note_failure worker "$status"
  exit "$status"
fi
touch "$mark"
