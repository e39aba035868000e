# A shell in a pod of a job, or the command that the arguments are, in the directory that its processes are in. A launcher that went
# elsewhere is process 1.
cd -P /proc/1/cwd 2>/dev/null || true
mark=${INFRA_MARK_DIR:-}/failed.${INFRA_ATTEMPT:-0}.${INFRA_ROLE:-worker}.${JOB_COMPLETION_INDEX:-0}
if [ -e "$mark" ]; then
  echo "infra: the program of this replica has failed; the launcher holds the pod for ${INFRA_HOLD:-180} s at most, and this ends with it" >&2
fi
if [ $# -gt 0 ]; then exec "$@"; fi
if command -v bash >/dev/null 2>&1; then exec bash; fi
exec sh
