
# A trainer and its parameter server, with the variables of the first generation. The trainer's number is the completion index, and
# the list of peers has the same length and order in every pod, whichever peers exist yet.
index=${JOB_COMPLETION_INDEX:?}
trainers=${CONF_PADDLE_GRADIENT_NUM:?}
root=${JOB_PATH:?}/${JOB_NAME:?}
output=${INFRA_OUTPUT_DIR:-$root/output}
marks=${INFRA_RUN_DIR:?}
logs=$output/node_$index
work=${INFRA_WORK_DIR:-/root}

mkdir -p "$logs" "$marks" "$work/data"
# Markers of an earlier attempt of this trainer are no longer true; peers that believed them would not wait for this one.
rm -f "$marks/up.$index" "$marks/done.$index"
trap 'rm -f "$marks/up.$index"; end_children' EXIT
# A parameter server listens on the address of its network card, not on 127.0.0.1.
[ "$trainers" -gt 1 ] || INFRA_PEERS=${POD_IP:?}
if [ -d "$root/$TRAIN_CONFIG_DIR" ]; then
  cp -R "$root/$TRAIN_CONFIG_DIR/." "$work/"
elif [ $# = 0 ]; then
  misconfigured "there is no directory $root/$TRAIN_CONFIG_DIR with the training configuration; TRAIN_CONFIG_DIR names it"
fi
[ ! -d "$root/$index/data" ] || cp -R "$root/$index/data/." "$work/data/"
cd "$work"

# listens PORT: whether something in this pod listens there, on its own address or on all.
listens() {
  port=$(printf '%04X' "$1")
  own=$(echo "${POD_IP:-}" | (IFS=. read -r a b c d && [ -n "$d" ] && printf '%02X%02X%02X%02X' "$d" "$c" "$b" "$a")) || own=none
  grep -qsE ": (0{8}|0{32}|(0{16}FFFF0{4})?$own):$port [0-9A-F]+:[0-9A-F]+ 0A " /proc/net/tcp /proc/net/tcp6
}

paddle pserver --nics="$CONF_PADDLE_NIC" --port="$CONF_PADDLE_PORT" --ports_num="$CONF_PADDLE_PORTS_NUM" \
  --ports_num_for_sparse="$CONF_PADDLE_PORTS_NUM_SPARSE" --num_gradient_servers="$trainers" \
  --comment=paddle_process_by_paddle >>"$logs/server.log" 2>&1 &
server=$!
children=$server

server_lives() {
  kill -0 "$server" 2>/dev/null && return
  status=0
  wait "$server" || status=$?
  say "the parameter server exited with $status; the end of $logs/server.log:"
  tail -n 20 "$logs/server.log" >&2
  [ "$status" != 0 ] || status=1
  exit "$status"
}
server_listens() { server_lives && listens "$CONF_PADDLE_PORT"; }
# A peer is up when its marker has the address that its name resolves to: replaced pods have left markers with another address.
all_are_up() {
  server_lives
  number=0
  for peer in $(echo "$INFRA_PEERS" | tr , ' '); do
    said=$(cat "$marks/up.$number" 2>/dev/null) || return 1
    [ -n "$said" ] && [ "$said" = "$(address_of "$peer")" ] || return 1
    number=$((number + 1))
  done
}
all_are_done() { server_lives && all_marked 'done' "$trainers"; }

await "the parameter server of trainer $index" server_listens
# A trainer fails at once if a peer does not listen, so all wait for all.
echo "${POD_IP:?}" >"$marks/up.$index"
await "the parameter servers of all $trainers trainers" all_are_up

# Programs of version 2 read these instead of flags.
export PADDLE_INIT_PORT="$CONF_PADDLE_PORT" PADDLE_INIT_PORTS_NUM="$CONF_PADDLE_PORTS_NUM"
export PADDLE_INIT_PORTS_NUM_FOR_SPARSE="$CONF_PADDLE_PORTS_NUM_SPARSE" PADDLE_INIT_NUM_GRADIENT_SERVERS="$trainers"
export PADDLE_INIT_TRAINER_ID="$index" PADDLE_INIT_PSERVERS="$INFRA_PEERS"
export PADDLE_INIT_TRAINER_COUNT="${TRAINER_COUNT:-1}" PADDLE_INIT_USE_GPU="${USE_GPU:-0}"
if [ $# = 0 ]; then
  # shellcheck disable=SC2086 # several words
  set -- paddle train --nics="$CONF_PADDLE_NIC" --port="$CONF_PADDLE_PORT" --ports_num="$CONF_PADDLE_PORTS_NUM" \
    --ports_num_for_sparse="$CONF_PADDLE_PORTS_NUM_SPARSE" --comment=paddle_process_by_paddle --pservers="$INFRA_PEERS" \
    --trainer_id="$index" --num_gradient_servers="$trainers" --trainer_count="${TRAINER_COUNT:-1}" --use_gpu="${USE_GPU:-0}" \
    --local=0 --save_dir="$output" ${TRAIN_ARGS:-}
fi

# Through a named pipe: the status of `train | tee` would be that of tee.
pipe=$work/.infra-log
rm -f "$pipe"
mkfifo "$pipe"
tee -a "$logs/train.log" <"$pipe" &
copier=$!
"$@" >"$pipe" 2>&1 &
trainer=$!
children="$server $trainer"
status=0
wait "$trainer" || status=$?
wait "$copier" || true
if [ "$status" != 0 ]; then
  say "trainer $index exited with $status"
  exit "$status"
fi

# The others still need this parameter server.
touch "$marks/done.$index"
patience=${INFRA_MAX_RUNTIME:-604800}
await "the other trainers" all_are_done
say "trainer $index is done"
