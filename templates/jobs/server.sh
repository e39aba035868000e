
# A parameter server serves until it is terminated, which happens when the workers have succeeded.
begin
run "$@"
if [ "$status" = 0 ]; then
  misconfigured "a program must serve when its task is ps: it returned although the workers may still need it"
fi
conclude "the parameter server"
