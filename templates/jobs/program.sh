
# Any program, alone or one of several. Peers are named where the framework connects to all of them when it starts.
begin
await_peers "${1:-}"
run "$@"
conclude
