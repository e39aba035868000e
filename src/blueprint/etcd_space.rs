//! How large etcd's data may become on its volume.

/// The most that etcd's makers recommend.
const MOST_BYTES: u64 = 8 * GIBIBYTE;
/// For the write-ahead log and the file system itself.
const ASIDE_BYTES: u64 = GIBIBYTE;
/// The data, two snapshots of it that stay, and one in the making.
const COPIES: u64 = 4;
const GIBIBYTE: u64 = 1 << 30;

/// The limit at which etcd takes no more writes. Beyond it a snapshot could fill the volume, and etcd ends when that is full.
pub(super) fn quota_bytes(volume_gib: u32) -> u64 {
    let room = (u64::from(volume_gib) * GIBIBYTE).saturating_sub(ASIDE_BYTES);
    (room / COPIES).min(MOST_BYTES)
}

#[cfg(test)]
mod tests {
    use super::{COPIES, GIBIBYTE, quota_bytes};

    #[test]
    fn data_and_its_snapshots_fit_on_the_volume() {
        for volume in [8, 20, 33, 1024] {
            assert!(quota_bytes(volume) * COPIES < u64::from(volume) * GIBIBYTE, "{volume}");
        }
        assert_eq!(quota_bytes(20) / (GIBIBYTE / 100), 475);
        assert_eq!(quota_bytes(1024), 8 * GIBIBYTE);
    }
}
