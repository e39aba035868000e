
# One node of torchrun. A name that is not there yet ends older versions at once.
await "the name $PET_MASTER_ADDR" has_address "$PET_MASTER_ADDR"
mkdir -p "$INFRA_OUTPUT_DIR"
exec "$@"
