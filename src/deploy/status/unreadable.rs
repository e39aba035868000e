//! What the caller may not read: a status without it is better than none.

use crate::aws::AwsError;

/// What could not be read, in sentences.
#[derive(Clone, Debug, Default)]
pub(crate) struct Unreadable(pub(crate) Vec<String>);

impl Unreadable {
    /// The answer; none with a sentence in its place if the caller may not have it.
    pub(crate) fn take<T>(&mut self, what: &str, answer: Result<T, AwsError>) -> Result<Option<T>, AwsError> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if error.is_denied() => {
                let text = format!("{what} could not be read: the caller may not {}", error.operation);
                // One missing permission may be met several times.
                if !self.0.contains(&text) {
                    self.0.push(text);
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
