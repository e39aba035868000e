
# A worker that tells the parameter servers when it is done.
mark=$INFRA_RUN_DIR/done.$JOB_COMPLETION_INDEX
mkdir -p "$INFRA_RUN_DIR" "$INFRA_OUTPUT_DIR"
rm -f "$mark"
"$@" &
worker=$!
children=$worker
status=0
wait "$worker" || status=$?
[ "$status" = 0 ] || exit "$status"
touch "$mark"
