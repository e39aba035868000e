
# A program that nobody waits for. It finds the directory of its output.
mkdir -p "$INFRA_OUTPUT_DIR"
exec "$@"
