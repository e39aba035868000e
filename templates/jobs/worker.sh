
# A worker that tells the parameter servers when it is done.
mkdir -p "$INFRA_RUN_DIR" "$INFRA_OUTPUT_DIR"
"$@" &
worker=$!
children=$worker
status=0
wait "$worker" || status=$?
[ "$status" = 0 ] || exit "$status"
touch "$INFRA_RUN_DIR/done.$JOB_COMPLETION_INDEX"
