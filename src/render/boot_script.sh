#!/bin/bash
# Fetches this machine's configuration from S3, compares its digest and hands over to it. cloud-init keeps a copy of this script, which
# therefore holds no key, and runs it in the first boot only.
umask 022
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=5 AWS_PAGER=
digest=@DIGEST@

mkdir -p /etc/infra
cat >/etc/infra/stack.env <<'END'
@STACK_ENVIRONMENT@
END
while IFS='=' read -r name value; do
  printf -v "$name" %s "$value"
done </etc/infra/stack.env
key=$INFRA_PREFIX'@KEY@'
object=s3://$INFRA_BUCKET/$key

say() {
  printf 'infra: %s\n' "$*" >&2
  printf 'infra: %s\n' "$*" 2>/dev/null >>"$console" || true
}
console=$(printenv INFRA_CONSOLE) || console=/dev/console

stop() {
  say "boot failed: $*"
  rm -rf "$work"
  if answer=$(aws cloudformation signal-resource --region "$INFRA_REGION" --stack-name "$INFRA_STACK" \
    --logical-resource-id "$INFRA_RESOURCE" --unique-id "$(cat /var/lib/cloud/data/instance-id)" --status FAILURE 2>&1); then
    say "signalled FAILURE of $INFRA_RESOURCE to stack $INFRA_STACK"
  else
    say "FAILURE of $INFRA_RESOURCE not signalled: $(printf %s "$answer" | tr '\n' ' ')"
  fi
  exit 1
}

# In memory, where the keys in it do not outlive the machine.
work=/run/infra-boot
rm -rf "$work"
mkdir -m 0700 "$work"
archive=$work/node.tar

seconds=$(printenv INFRA_DEADLINE_SECONDS) || seconds=300
while true; do
  answer=$(aws s3api get-object --region "$INFRA_REGION" --bucket "$INFRA_BUCKET" --key "$key" "$archive" 2>&1) && break
  answer=$(printf %s "$answer" | tr '\n' ' ')
  case $answer in
  *NoSuchKey* | *NoSuchBucket*) stop "$object is missing: $answer" ;;
  esac
  # Rights of a new role take a while; so does the network.
  if ((SECONDS >= seconds)); then
    # A role that may not list gets the same answer for an object that does not exist.
    case $answer in
    *AccessDenied*) answer="the machine's role may not read it, or it is missing: $answer" ;;
    esac
    stop "$object was not read within $seconds s: $answer"
  fi
  say "waiting for $object: $answer"
  sleep 5
done
if ! printf '%s  %s\n' "$digest" "$archive" | sha512sum --status --check; then
  stop "$object does not have the sha512 $digest; nothing was unpacked"
fi
if ! answer=$(tar --extract --preserve-permissions --no-overwrite-dir --file "$archive" --directory / 2>&1); then
  stop "$object cannot be unpacked: $(printf %s "$answer" | tr '\n' ' ')"
fi
rm -rf "$work"
say "the configuration of this machine is unpacked"
exec /opt/infra/bin/apply-node
