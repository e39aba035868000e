//! How large etcd's data may grow on its volume.

/// The largest quota that etcd's documentation recommends.
const LARGEST_QUOTA_BYTES: u64 = 8 * GIBIBYTE;
/// Reserved for the write-ahead log and the file system itself.
const RESERVED_BYTES: u64 = GIBIBYTE;
/// The data, the two snapshots that are kept, and the one being written.
const COPIES: u64 = 4;
const GIBIBYTE: u64 = 1 << 30;

/// The size at which etcd refuses writes. With more data a snapshot could fill the volume, and etcd exits when the volume is full.
pub(super) fn quota_bytes(volume_gib: u32) -> u64 {
    let room = (u64::from(volume_gib) * GIBIBYTE).saturating_sub(RESERVED_BYTES);
    (room / COPIES).min(LARGEST_QUOTA_BYTES)
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
