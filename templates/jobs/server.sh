
# A parameter server never ends by itself: it leaves when every worker has said that it is done.
mkdir -p "$INFRA_RUN_DIR"
"$@" &
server=$!
children=$server
until all_marked 'done' "$INFRA_WORKERS"; do
  if ! kill -0 "$server" 2>/dev/null; then
    status=0
    wait "$server" || status=$?
    say "the parameter server ended with $status before the workers were done"
    exit "$status"
  fi
  sleep "$pause"
done
say "all $INFRA_WORKERS workers are done"
