
# A trainer and its parameter server, with the variables of the first generation. The trainer's number is the completion index, and
# the list of peers has the same length and order in every pod, whichever peers exist yet.
begin
trainers=${CONF_PADDLE_GRADIENT_NUM:?}
root=${JOB_PATH:?}/${JOB_NAME:?}
output=${INFRA_OUTPUT_DIR:?}
server_log=$output/node_$index/server.log
work=${INFRA_WORK_DIR:-/root}
up=up.$attempt

# set_in_arguments FLAG: prints the value that TRAIN_ARGS give a flag; fails if they do not name it. The last one counts.
set_in_arguments() {
  flag=$1
  named=1
  next=
  value=
  # shellcheck disable=SC2086 # several words
  set -- ${TRAIN_ARGS:-}
  for word; do
    case $word in
    "--$flag="* | "-$flag="*) value=${word#*=} named=0 next= ;;
    "--$flag" | "-$flag") named=0 next=yes ;;
    *)
      [ -z "$next" ] || value=$word
      next=
      ;;
    esac
  done
  echo "$value"
  return "$named"
}

# last_pass: prints the number of the last pass whose parameters were saved completely.
last_pass() {
  found=
  for file in "$output"/pass-[0-9][0-9][0-9][0-9][0-9]/done; do
    [ ! -e "$file" ] || found=${file%/done}
  done
  [ -n "$found" ] || return 1
  # Leading zeros would make it an octal number.
  found=${found##*/pass-}
  found=${found#"${found%%[!0]*}"}
  echo "${found:-0}"
}

# resume: continues after the last pass that is complete. `--num_passes` counts from `--start_pass`, and `--init_model_path` would be
# loaded instead of the pass before.
resume=
if [ $# = 0 ] && ! set_in_arguments start_pass >/dev/null && pass=$(last_pass); then
  total=$(set_in_arguments num_passes) || total=100
  first=$((pass + 1))
  if [ "$first" -ge "$total" ]; then
    say "all $total passes are complete: nothing is left to train"
    conclude
  fi
  say "pass $pass is complete: training continues with pass $first of $total"
  resume="--start_pass=$first --num_passes=$((total - first))"
  ! set_in_arguments init_model_path >/dev/null || resume="$resume --init_model_path="
fi

mkdir -p "$work/data"
if ! { mkdir -p "$output/node_$index" && printf '' >>"$server_log"; } 2>/dev/null; then
  say "cannot write to $server_log: what the parameter server prints is in the pod's log only"
  server_log=/dev/stderr
fi
# A parameter server listens on the address of its network card, not on 127.0.0.1.
[ "$trainers" -gt 1 ] || INFRA_PEERS=${POD_IP:?}
if [ -n "${INFRA_CODE_DIR:-}" ]; then
  # Programs of that generation write beside their configuration.
  cp -R "$INFRA_CODE_DIR/." "$work/"
elif [ -d "$root/$TRAIN_CONFIG_DIR" ]; then
  cp -R "$root/$TRAIN_CONFIG_DIR/." "$work/"
elif [ $# = 0 ]; then
  misconfigured "there is no directory $root/$TRAIN_CONFIG_DIR with the training configuration; TRAIN_CONFIG_DIR names it"
fi
# An import divides data into NUMBER/data, as the tutorial of distributed training did; the tutorials on AWS have data/NUMBER.
if [ -d "$root/data/0" ]; then
  [ ! -d "$root/0/data" ] || misconfigured "there are both $root/0/data and $root/data/0: delete the data that is not meant"
  own=$root/data/$index more=$root/data/$trainers
else
  own=$root/$index/data more=$root/$trainers/data
fi
if [ -d "$own" ]; then
  [ ! -d "$more" ] || misconfigured "the data is divided among more than $trainers trainers: there is $more"
  cp -R "$own/." "$work/data/"
elif [ -d "$root/data/0" ] || [ -d "$root/0/data" ]; then
  misconfigured "the data is divided among fewer than $trainers trainers: there is no $own"
else
  say "no data is copied to $work/data: there is neither $root/$index/data nor $root/data/$index"
fi
cd "$work"

# listens PORT: whether something in this pod listens there, on its own address or on all.
listens() {
  port=$(printf '%04X' "$1")
  own=$(echo "${POD_IP:-}" | (IFS=. read -r a b c d && [ -n "$d" ] && printf '%02X%02X%02X%02X' "$d" "$c" "$b" "$a")) || own=none
  grep -qsE ": (0{8}|0{32}|(0{16}FFFF0{4})?$own):$port [0-9A-F]+:[0-9A-F]+ 0A " /proc/net/tcp /proc/net/tcp6
}

paddle pserver --nics="$CONF_PADDLE_NIC" --port="$CONF_PADDLE_PORT" --ports_num="$CONF_PADDLE_PORTS_NUM" \
  --ports_num_for_sparse="$CONF_PADDLE_PORTS_NUM_SPARSE" --num_gradient_servers="$trainers" \
  --comment=paddle_process_by_paddle >>"$server_log" 2>&1 &
server=$!
beside=$server

# Ends the pod if the parameter server ended, which the other trainers cannot do without.
server_lives() {
  ! kill -0 "$server" 2>/dev/null || return 0
  ended=0
  wait "$server" || ended=$?
  beside=
  say "the parameter server exited with $ended; the end of $server_log:"
  [ ! -f "$server_log" ] || tail -n 20 "$server_log" >&2
  end_program
  status=$((ended != 0 ? ended : 1))
  conclude "the parameter server"
}
check() { server_lives; }
server_listens() { server_lives && listens "$CONF_PADDLE_PORT"; }
# A peer is up when its mark has the address that its name resolves to: pods that were replaced have left marks with another address.
all_are_up() {
  server_lives
  number=0
  for peer in $(echo "$INFRA_PEERS" | tr , ' '); do
    said=
    { read -r said <"$marks/$up.$number"; } 2>/dev/null || return 1
    [ -n "$said" ] && [ "$said" = "$(address_of "$peer")" ] || return 1
    number=$((number + 1))
  done
}
all_are_done() { server_lives && every_one is_done; }

await "the parameter server of trainer $index" server_listens
# A trainer fails at once if a peer does not listen, so all wait for all.
echo "${POD_IP:?}" >"$marks/$up.$index" || misconfigured "cannot write to $marks, where trainers find each other"
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
    --local=0 --save_dir="$output" ${TRAIN_ARGS:-} $resume
fi
run "$@"
if [ "$status" = 0 ] && [ "$trainers" -gt 1 ]; then
  # The others still need this parameter server.
  succeed
  program=
  patience=
  await "the other trainers" all_are_done
fi
conclude "trainer $index"
