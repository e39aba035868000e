
# PYTHON [-u] (FILE | -m MODULE) ARGUMENTS...: one node of paddle.distributed.launch.
begin
resolver=$1
shift
[ "${1:-}" != -u ] || shift
can_resolve || misconfigured "there is neither getent nor $resolver in this image, so names cannot be resolved"
# It starts the store only where the master's address is literally its own, so the name of the first replica is resolved here.
has_master() { master=$(address_of "$INFRA_MASTER_HOST") && [ -n "$master" ]; }
await "the name $INFRA_MASTER_HOST" has_master
export PADDLE_MASTER="$master:$INFRA_MASTER_PORT"
mkdir -p "$PADDLE_LOG_DIR" 2>/dev/null || say "cannot create $PADDLE_LOG_DIR"
if [ "${1:-}" = -m ]; then
  [ -n "${2:-}" ] || misconfigured "the command names no module after -m"
  make_scratch || misconfigured "there is no directory in this image that can be written to"
  # It takes nothing but a file, whose directory would be searched first for modules.
  cat >"$scratch/module.py" <<'END'
import os
import runpy
import sys

sys.path[0] = os.getcwd()
del sys.argv[0]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
END
  shift
  set -- "$scratch/module.py" "$@"
fi
# Without GPUs it chooses gloo by itself; after an unknown option it would take the next word for the program.
run "$resolver" -u -m paddle.distributed.launch "$@"
conclude
