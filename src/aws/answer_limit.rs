//! How much of an answer is read: the SDK itself reads whatever comes into memory.

use aws_sdk_sts::config::interceptors::BeforeDeserializationInterceptorContextMut;
use aws_sdk_sts::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_sts::error::BoxError;
use aws_smithy_types::body::SdkBody;
use http_body_util::{BodyExt, LengthLimitError, Limited};

/// Pages of the SDK and our own objects have some mebibytes at most.
const LARGEST_ANSWER: usize = 64 << 20;

/// The answer is larger than any expected one.
#[derive(Debug, thiserror::Error)]
#[error("the answer is larger than 64 MiB")]
struct TooLarge;

/// Gives up an answer that is too large, whether it is read whole or piece by piece.
#[derive(Debug)]
pub(super) struct AnswerLimit;

impl Intercept for AnswerLimit {
    fn name(&self) -> &'static str {
        "AnswerLimit"
    }

    fn modify_before_deserialization(
        &self,
        context: &mut BeforeDeserializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let body = context.response_mut().body_mut();
        let whole = std::mem::replace(body, SdkBody::taken());
        let limited = Limited::new(whole, LARGEST_ANSWER);
        *body =
            SdkBody::from_body_1_x(limited.map_err(|error| {
                if error.is::<LengthLimitError>() { BoxError::from(TooLarge) } else { error }
            }));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::aws::test_script::Script;

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_too_large_is_given_up() {
        let script = Script::new(|_| (200, "x".repeat(65 << 20)));
        let answer = script.clients().await.sts.get_caller_identity().send().await;
        let error =
            answer.map_err(aws_sdk_sts::error::DisplayErrorContext).map_err(|error| error.to_string());
        assert!(error.is_err_and(|error| error.contains("the answer is larger than 64 MiB")));
    }
}
