# shellcheck shell=bash
# Sourced: instance metadata, and AWS calls signed by curl with the machine's role.
#
# For tests:
#   INFRA_ENDPOINT_EC2, _CLOUDFORMATION, _S3, _IMDS  instead of the real hosts
#   INFRA_CALL_SECONDS           longest time for one request (30)
#   INFRA_CALL_DEADLINE_SECONDS  how long a request is retried (180)

# shellcheck source-path=SCRIPTDIR/../lib source=say.sh disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/say.sh"

call_seconds=${INFRA_CALL_SECONDS:-30}
call_deadline=${INFRA_CALL_DEADLINE_SECONDS:-180}
empty_sha256=e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# imds PATH: one request. 0 and the value, 1 if there is none, 2 if the service does not answer.
imds() {
  local endpoint=${INFRA_ENDPOINT_IMDS:-http://169.254.169.254} status token='' expires=0
  # In a file, because most calls run in subshells.
  if [[ -s $scratch/token ]]; then
    read -r expires token <"$scratch/token"
  fi
  read_clock
  if ((clock >= expires)); then
    token=$(curl --silent --fail --noproxy '*' --max-time 5 --request PUT \
      --header 'X-aws-ec2-metadata-token-ttl-seconds: 300' "$endpoint/latest/api/token") || return 2
    printf '%s %s\n' $((clock + 240000)) "$token" >"$scratch/token"
  fi
  status=$(printf 'header = "X-aws-ec2-metadata-token: %s"\n' "$token" |
    curl --silent --config - --noproxy '*' --max-time 5 --output "$scratch/metadata" --write-out '%{http_code}' \
      "$endpoint/latest/$1") || return 2
  case $status in
  200) cat "$scratch/metadata" ;;
  401)
    rm -f "$scratch/token"
    return 2
    ;;
  404) return 1 ;;
  *) return 2 ;;
  esac
}

imds_try() {
  local status=0
  imds "$1" >"$scratch/value" || status=$?
  case $status in
  0) return 0 ;;
  1) reason="the metadata service has no $1" ;;
  *) reason='the metadata service does not answer' ;;
  esac
  return 1
}

# Prints the value, or after two minutes the reason.
imds_value() {
  retry_until 120 "instance metadata $1" imds_try "$1" || {
    printf '%s\n' "$reason"
    return 1
  }
  cat "$scratch/value"
}

json_value() {
  [[ $2 =~ \"$1\"[[:space:]]*:[[:space:]]*\"([^\"]*)\" ]] && printf '%s' "${BASH_REMATCH[1]}"
}

# xml_value NAME TEXT: the first element of that name.
xml_value() {
  local value
  [[ $2 =~ \<$1\>([^<]*)\</$1\> ]] || return 1
  value=${BASH_REMATCH[1]}
  value=${value//&lt;/<}
  value=${value//&gt;/>}
  value=${value//&quot;/\"}
  value=${value//&apos;/\'}
  value=${value//&#39;/\'}
  printf '%s' "${value//&amp;/\&}"
}

url_encode() {
  local LC_ALL=C text=$1 place letter
  for ((place = 0; place < ${#text}; place++)); do
    letter=${text:place:1}
    case $letter in
    [a-zA-Z0-9.~_-]) printf '%s' "$letter" ;;
    *) printf '%%%02X' "'$letter" ;;
    esac
  done
}

# Read before every call: credentials expire, and the metadata service is local.
read_credentials() {
  local folder=meta-data/iam/security-credentials role document
  imds_try $folder/ || return 1
  role=$(head -n 1 "$scratch/value")
  imds_try "$folder/$role" || return 1
  document=$(<"$scratch/value")
  if ! key=$(json_value AccessKeyId "$document") || ! secret=$(json_value SecretAccessKey "$document") ||
    ! session=$(json_value Token "$document"); then
    reason="the credentials of role $role are incomplete"
    return 1
  fi
}

# signed_try FILE SERVICE ACTION CURL_ARGUMENTS...: one request; the response body is written to FILE.
# 0 done, 1 retry, 2 refused. A missing object is refused, too: whether S3 says so or denies it depends on the caller's rights.
signed_try() {
  local file=$1 service=$2 action=$2:$3 status code message answer='' key secret session
  shift 3
  read_credentials || return 1
  rm -f "$file"
  # On standard input, because any process on the machine can read another's arguments.
  status=$(printf 'user = "%s:%s"\nheader = "x-amz-security-token: %s"\n' "$key" "$secret" "$session" |
    curl --silent --show-error --config - --aws-sigv4 "aws:amz:$INFRA_REGION:$service" --connect-timeout 5 \
      --output "$file" --write-out '%{http_code}' "$@" 2>"$scratch/complaint") || {
    reason="$action: $(head -n 1 "$scratch/complaint")"
    return 1
  }
  if [[ $status == 2?? ]]; then
    return 0
  fi
  if [[ -e $file ]]; then
    answer=$(head -c 20000 "$file" | tr '\0\n' '  ')
  fi
  code=$(xml_value Code "$answer") || code="HTTP $status"
  message=$(xml_value Message "$answer") || message='no message'
  reason="$action: $code: ${message:0:400}"
  case $code in
  *Throttl* | *TooManyRequests* | RequestLimitExceeded | SlowDown | RequestTimeout) return 1 ;;
  # A clock that is not set yet.
  RequestTimeTooSkewed | RequestExpired) return 1 ;;
  esac
  case $status in
  5?? | 429) return 1 ;;
  esac
  return 2
}

# aws_post SERVICE ENDPOINT BODY: prints the response and returns 0, or prints the error and returns 1 (timed out) or 2 (refused).
# Form bodies, because older curls sign query strings unsorted.
aws_post() {
  local service=$1 endpoint=$2 body=$3 action=unknown status=0
  if [[ $body =~ (^|&)Action=([A-Za-z]+) ]]; then
    action=${BASH_REMATCH[2]}
  fi
  retry_until "$call_deadline" "$service:$action" \
    signed_try "$scratch/answer" "$service" "$action" --max-time "$call_seconds" --data-raw "$body" "$endpoint/" || status=$?
  case $status in
  0) cat "$scratch/answer" ;;
  *)
    printf '%s\n' "$reason"
    return "$status"
    ;;
  esac
}

ec2_endpoint() { printf '%s' "${INFRA_ENDPOINT_EC2:-https://ec2.$INFRA_REGION.$INFRA_DOMAIN}"; }

cloudformation_endpoint() { printf '%s' "${INFRA_ENDPOINT_CLOUDFORMATION:-https://cloudformation.$INFRA_REGION.$INFRA_DOMAIN}"; }

s3_endpoint() {
  if [[ -n ${INFRA_ENDPOINT_S3:-} ]]; then
    printf '%s' "$INFRA_ENDPOINT_S3"
  elif [[ $INFRA_BUCKET == *.* ]]; then
    # The wildcard of S3's certificate covers no dots.
    printf '%s' "https://s3.$INFRA_REGION.$INFRA_DOMAIN/$INFRA_BUCKET"
  else
    printf '%s' "https://$INFRA_BUCKET.s3.$INFRA_REGION.$INFRA_DOMAIN"
  fi
}

# The key of one of this cluster's etcd snapshots.
snapshot_key() {
  local prefix=${INFRA_PREFIX:-}
  prefix=${prefix#/}
  prefix=${prefix%/}
  printf '%s' "${prefix:+$prefix/}$INFRA_CLUSTER/snapshots/$1"
}

# Objects may be large: a transfer is aborted when it stalls, not after a fixed time.
transfer_limits=(--speed-limit 1 --speed-time "$call_seconds")

# s3_get KEY FILE [VERSION]: 0, 1 (timed out), 2 (refused); $reason explains it.
s3_get() {
  local status=0 query=''
  if [[ -n ${3:-} ]]; then
    query="?versionId=$(url_encode "$3")"
  fi
  retry_until "$call_deadline" "s3:GetObject $1" signed_try "$2.part" s3 "GetObject $1" "${transfer_limits[@]}" \
    --header "x-amz-content-sha256: $empty_sha256" "$(s3_endpoint)/$1$query" || status=$?
  if ((status == 0)); then
    mv -f "$2.part" "$2"
  else
    rm -f "$2.part"
  fi
  return "$status"
}

# s3_ask ACTION QUERY: a question about the bucket itself, with the same return codes; $answer is the response.
# Names in the query must be sorted: older curls sign it as it is.
s3_ask() {
  answer=''
  retry_until "$call_deadline" "s3:$1" signed_try "$scratch/answer" s3 "$1" --max-time "$call_seconds" \
    --header "x-amz-content-sha256: $empty_sha256" "$(s3_endpoint)/?$2" || return
  answer=$(<"$scratch/answer")
}

# s3_find PREFIX: leaves in $found_key the first key that begins with it, or nothing; the same return codes.
s3_find() {
  s3_ask "ListBucket $1" "list-type=2&max-keys=1&prefix=$(url_encode "$1")" || return
  # shellcheck disable=SC2034 # for the scripts that source this file
  found_key=$(xml_value Key "$answer") || found_key=''
}

# s3_versioning: leaves in $versioning Enabled, Suspended, or nothing if the bucket has never had versions; the same return codes.
s3_versioning() {
  s3_ask GetBucketVersioning versioning= || return
  # shellcheck disable=SC2034 # for the scripts that source this file
  versioning=$(xml_value Status "$answer") || versioning=''
}

# s3_put FILE KEY: the same return codes; leaves in $version_id the version that was written, if the bucket has versions.
s3_put() {
  local sum
  sum=$(sha256sum <"$1")
  retry_until "$call_deadline" "s3:PutObject $2" signed_try "$scratch/answer" s3 "PutObject $2" "${transfer_limits[@]}" \
    --upload-file "$1" --header "x-amz-content-sha256: ${sum%% *}" --header 'x-amz-server-side-encryption: aws:kms' \
    --header "x-amz-server-side-encryption-aws-kms-key-id: $INFRA_KMS_KEY" --dump-header "$scratch/headers" "$(s3_endpoint)/$2" || return
  # shellcheck disable=SC2034 # for the scripts that source this file
  version_id=$(sed -n 's/^x-amz-version-id: *\([^[:space:]]*\).*$/\1/Ip' "$scratch/headers" | tail -n 1)
}
