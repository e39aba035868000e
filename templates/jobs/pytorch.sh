
# One node of torchrun. Older versions fail at once if the name does not resolve yet.
await "the name $PET_MASTER_ADDR" has_address "$PET_MASTER_ADDR"
mkdir -p "$INFRA_OUTPUT_DIR"
exec "$@"
