
# One node of paddle.distributed.launch. The launcher starts the store only where the master's address is literally its own, so
# the name of the first replica is resolved here.
await "the name $INFRA_MASTER_HOST" has_address "$INFRA_MASTER_HOST"
PADDLE_MASTER=$(address_of "$INFRA_MASTER_HOST"):$INFRA_MASTER_PORT
export PADDLE_MASTER
mkdir -p "$PADDLE_LOG_DIR" "$INFRA_OUTPUT_DIR"
python=python
command -v python >/dev/null 2>&1 || python=python3
# Without GPUs it chooses gloo by itself; after an unknown option it would take the next word for the program.
exec "$python" -u -m paddle.distributed.launch "$@"
