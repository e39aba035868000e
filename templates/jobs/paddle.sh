
# One node of paddle.distributed.launch. The launcher starts the store only where the master's address is its own, letter by letter,
# so the name of the first replica is turned into its address here.
await "the name $INFRA_MASTER_HOST" has_address "$INFRA_MASTER_HOST"
PADDLE_MASTER=$(address_of "$INFRA_MASTER_HOST"):$INFRA_MASTER_PORT
export PADDLE_MASTER
mkdir -p "$PADDLE_LOG_DIR" "$INFRA_OUTPUT_DIR"
python=python
command -v python >/dev/null 2>&1 || python=python3
# Without GPUs it chooses gloo by itself; an option it does not know would make the next word the program.
exec "$python" -u -m paddle.distributed.launch "$@"
