
# A parameter server never ends by itself: it is stopped when every worker has left its marker.
begin_run ps
# A server that left is not restarted, so this is a new attempt of the same job, and the markers are old.
left=$INFRA_RUN_DIR/left.$JOB_COMPLETION_INDEX
[ ! -e "$left" ] || delete_marks "$INFRA_RUN_DIR"/done.* "$left"
"$@" &
server=$!
children=$server
until all_marked 'done' "$INFRA_WORKERS"; do
  if ! kill -0 "$server" 2>/dev/null; then
    status=0
    wait "$server" || status=$?
    say "the parameter server exited with $status before the workers were done"
    [ "$status" = 0 ] || note_failure ps "$status"
    exit "$status"
  fi
  leave_if_failed worker
  sleep "$pause"
done
say "all $INFRA_WORKERS workers are done"
touch "$left"
