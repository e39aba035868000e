
patience=${INFRA_DATA_TIMEOUT:-86400}
is_there() { [ -e "$DATA_STAMP" ]; }
await "the data: no $DATA_STAMP yet" is_there
