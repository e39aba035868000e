//! An API that is away for a while: told of once when it goes and once when it is back.

use super::error::JobError;

/// Whether the API answers.
#[derive(Debug, Default)]
pub struct Outage {
    is_away: bool,
}

/// What is told of an outage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contact {
    /// The API does not answer; it is asked again.
    Lost(String),
    /// It answers again.
    Found,
}

impl Outage {
    /// What was read; nothing if the API is away, as it is while a control plane is being replaced.
    pub fn survive<T>(
        &mut self,
        read: Result<T, JobError>,
        tell: impl FnOnce(Contact),
    ) -> Result<Option<T>, JobError> {
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
