
# Any program, alone or one of several.
begin
run "$@"
conclude
