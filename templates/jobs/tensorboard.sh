
# TensorBoard until a day after its job. Nobody tells it when that is, so it looks for pods of the job and for what they wrote last.
kept=${INFRA_KEPT:-86400}
look=${INFRA_LOOK:-60}
needed=$(now)
looked=0

# is_needed: whether the job is still to begin, runs, or has written to a log lately.
is_needed() {
  # Whoever waits in a queue has no directory yet.
  [ -d "$INFRA_RUN_DIR" ] || return 0
  ! has_address "$INFRA_GROUP_NAME" || return 0
  [ -n "$(find "$INFRA_RUNS_DIR"/*/logs -type f -mmin "-$(((kept + 59) / 60))" 2>/dev/null | head -n 1)" ]
}

check() {
  [ $(($(now) - looked)) -ge "$look" ] || return 0
  looked=$(now)
  if is_needed; then needed=$looked; fi
  [ $((looked - needed)) -ge "$kept" ] || return 0
  say "no process of the job has run for $kept s, so TensorBoard ends"
  end_program
  exit 0
}

# It does no part of the job.
succeed() { :; }
run "$@"
exit "$status"
