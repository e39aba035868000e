# shellcheck shell=bash
# Sourced: the shared file system of a machine that has one.

# shellcheck source-path=SCRIPTDIR/../lib source=aws.sh disable=SC1091
. "$(dirname "${BASH_SOURCE[0]}")/aws.sh"
read_settings "$root/etc/infra/file-system.env"

# From the kernel's table of mounts. A server that does not answer must not stop the question.
file_system_is_mounted() { timeout 30 findmnt --mountpoint "$root$INFRA_MOUNT_PATH" >/dev/null; }
