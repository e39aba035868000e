
# Before every pod, as root: the directories of the run, which every user may write to; then the data.
for directory in "$INFRA_RUN_DIR" "$INFRA_OUTPUT_DIR" "$INFRA_LOG_DIR" "$INFRA_LOG_DIR/attempt-$attempt" "$INFRA_RUN_DIR/.infra" \
  "$INFRA_MARK_DIR"; do
  mkdir -p "$directory" || misconfigured "cannot create $directory: the claim is read-only or full, or a file is in its place"
  chmod 0777 "$directory" 2>/dev/null || say "cannot make $directory writable for every user"
done
if [ -n "${DATA_STAMP:-}" ]; then
  patience=${INFRA_DATA_TIMEOUT:-86400}
  is_there() { [ -e "$DATA_STAMP" ]; }
  await "the data: no $DATA_STAMP yet" is_there
fi
