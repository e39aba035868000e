//! The states of capacity reservations.

use super::text_enum::text_enum;

text_enum! {
    /// The state of a capacity reservation or a capacity block.
    ReservationState {
        Active "active"
        Assessing "assessing"
        Cancelled "cancelled"
        Cancelling "cancelling"
        Delayed "delayed"
        Expired "expired"
        Failed "failed"
        PaymentFailed "payment-failed"
        PaymentPending "payment-pending"
        Pending "pending"
        Scheduled "scheduled"
        Unavailable "unavailable"
        Unsupported "unsupported"
    }
}
