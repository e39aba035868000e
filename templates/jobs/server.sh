
# A parameter server serves until it is terminated, which happens when the workers have succeeded.
begin
await_peers "${1:-}"
# Not even when it returned at the moment that it is terminated: a restarted one would have nothing left to do.
succeed() { :; }
run "$@"
if [ "$status" = 0 ]; then
  misconfigured "a program must serve when its task is ps: it returned although the workers may still need it"
fi
conclude "the parameter server"
