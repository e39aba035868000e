
# Before every pod, as root: the directories of the run, which every user may write to; then the data.

# Whether another JobSet than this one has used the directory of the run.
has_earlier_marks() {
  for directory in "$INFRA_RUN_DIR"/.infra/*; do
    [ ! -d "$directory" ] || [ "$directory" = "$INFRA_MARK_DIR" ] || return 0
  done
  return 1
}

check_settings
# Seed images have no launcher, and a pod may be evicted before its launcher starts.
leave_if_endless
if [ -n "${INFRA_RESUMED:-}" ]; then
  has_earlier_marks || misconfigured "there is no run $INFRA_RUN to resume: $INFRA_RUN_DIR holds none"
elif has_earlier_marks; then
  misconfigured "there is a run $INFRA_RUN already: --resume continues it, another --run begins a new one"
fi
root=${INFRA_RUN_DIR%/runs/*}
if [ -n "${INFRA_SEED_IMAGE:-}" ] && [ -d "$root/data/0" ] && [ ! -d "$root/0/data" ]; then
  misconfigured "a seed image reads $root/0/data, and the data is in $root/data/0: rename the directories, or remove seedImage"
fi
own_mounts=
for name in ${INFRA_MOUNTS:-}; do own_mounts="$own_mounts $INFRA_RUN_DIR/$name"; done
# shellcheck disable=SC2086 # several directories, without spaces in their names
for directory in "$INFRA_RUN_DIR" "$INFRA_OUTPUT_DIR" "$INFRA_LOG_DIR" "$INFRA_LOG_DIR/attempt-$attempt" "$INFRA_RUN_DIR/.infra" \
  "$INFRA_MARK_DIR" $own_mounts; do
  mkdir -p "$directory" || misconfigured "cannot create $directory: the claim is read-only or full, or a file is in its place"
  chmod 0777 "$directory" 2>/dev/null || say "cannot make $directory writable for every user"
done
# NFS remembers for a while that a name was not there, unless its directory is read again.
if [ -n "${INFRA_CODE_ON_CLAIM:-}" ] && ! { ls "${INFRA_CODE_ON_CLAIM%/*}" >/dev/null 2>&1 && [ -d "$INFRA_CODE_ON_CLAIM" ]; }; then
  misconfigured "the code of this job is not on the claim: there is no $INFRA_CODE_ON_CLAIM; \`infra job submit --replace\` uploads it again"
fi
if [ -n "${DATA_STAMP:-}" ]; then
  patience=${INFRA_DATA_TIMEOUT:-86400}
  is_there() { [ -e "$DATA_STAMP" ]; }
  await "the data: no $DATA_STAMP yet" is_there
fi
