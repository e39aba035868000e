
# A program without peers. Its output directory is created first.
mkdir -p "$INFRA_OUTPUT_DIR"
exec "$@"
