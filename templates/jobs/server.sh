
# A parameter server never ends by itself: it leaves when every worker has said that it is done.
begin_run ps
# One that left is not started again, so this is the same job once more, and the marks are of the last time.
left=$INFRA_RUN_DIR/left.$JOB_COMPLETION_INDEX
[ ! -e "$left" ] || rm -f "$INFRA_RUN_DIR"/done.* "$left"
"$@" &
server=$!
children=$server
until all_marked 'done' "$INFRA_WORKERS"; do
  if ! kill -0 "$server" 2>/dev/null; then
    status=0
    wait "$server" || status=$?
    say "the parameter server ended with $status before the workers were done"
    [ "$status" = 0 ] || note_failure ps "$status"
    exit "$status"
  fi
  leave_if_failed worker
  sleep "$pause"
done
say "all $INFRA_WORKERS workers are done"
touch "$left"
