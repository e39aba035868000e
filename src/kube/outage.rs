//! An API that does not answer for a while: reported once when that begins and once when it ends.

use std::fmt::Display;

use super::error::KubeError;

/// An error of a caller of the API.
pub(crate) trait MayPass: Display {
    /// Whether a retry may help soon.
    fn is_passing(&self) -> bool;
}

impl MayPass for KubeError {
    fn is_passing(&self) -> bool {
        Self::is_passing(self)
    }
}

/// Whether the API answers.
#[derive(Debug, Default)]
pub(crate) struct Outage {
    is_away: bool,
}

/// A change in whether the API answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Contact {
    /// The API does not answer; requests are retried.
    Lost(String),
    /// The API answers again.
    Found,
}

impl Outage {
    /// What was read; nothing if the API is unavailable, as it is while a control plane is being replaced.
    pub(crate) fn tolerate<T, E: MayPass>(
        &mut self,
        read: Result<T, E>,
        tell: impl FnOnce(Contact),
    ) -> Result<Option<T>, E> {
        match read {
            Ok(value) => {
                if std::mem::take(&mut self.is_away) {
                    tell(Contact::Found);
                }
                Ok(Some(value))
            }
            Err(error) if error.is_passing() => {
                if !std::mem::replace(&mut self.is_away, true) {
                    tell(Contact::Lost(error.to_string()));
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
