//! A change set that CloudFormation computes in the background: the wait for it, and whether it holds the template that was sent.

use std::time::Duration;

use serde_json::Value;

use crate::aws::{ChangeSet, ChangeSetStatus, TemplateSource};
use crate::deploy::error::DeployError;
use crate::deploy::run::Run;
use crate::waiting::Pace;

/// Change sets take seconds, large ones a minute or two; `plan` has no time limit of its own.
const LONGEST_COMPUTATION: Duration = Duration::from_mins(15);

/// Waits until CloudFormation has computed a change set.
pub(crate) async fn wait_for_change_set(run: &Run, name: &str, arn: &str) -> Result<ChangeSet, DeployError> {
    let mut pace = Pace::of_moment();
    let waiting = run.waiting.at_most(LONGEST_COMPUTATION);
    loop {
        let change_set = run.clients.change_set(name, arn).await?;
        // One that another process deletes never becomes complete.
        if matches!(
            change_set.status,
            ChangeSetStatus::CreateComplete
                | ChangeSetStatus::Failed
                | ChangeSetStatus::DeleteComplete
                | ChangeSetStatus::DeleteFailed
        ) {
            return Ok(change_set);
        }
        if let Err(end) = waiting.pause(pace.next_pause()).await {
            // That the change set could not be deleted matters less than why the wait ended.
            let _ = run.clients.delete_change_set(name, arn).await;
            return Err(Run::still_running(end, name));
        }
    }
}

/// Refuses a change set whose template is not the one that was sent: CloudFormation reads a large one from S3, and checks no digest.
/// What was sent within the call cannot be replaced, so that a change set without changes is not read again for it.
pub(crate) async fn check_template(
    run: &Run,
    name: &str,
    change_set: &ChangeSet,
    template: &TemplateSource,
    text: &str,
) -> Result<(), DeployError> {
    let is_wanted = match change_set.status {
        ChangeSetStatus::CreateComplete => true,
        _ => change_set.is_empty() && matches!(template, TemplateSource::Url(_)),
    };
    if !is_wanted {
        return Ok(());
    }
    let read = run.clients.change_set_template(&change_set.stack_arn, &change_set.arn).await?;
    if is_same_template(text, &read) {
        return Ok(());
    }
    Err(DeployError::ForeignTemplate { stack: name.to_owned() })
}

/// Whether two texts are the same template. `GetTemplate` gives a question mark for every character that is not ASCII, so that those
/// are not compared.
fn is_same_template(sent: &str, read: &str) -> bool {
    let parsed = |text: &str| {
        let ascii: String = text.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
        serde_json::from_str::<Value>(&ascii).ok()
    };
    let sent = parsed(sent);
    sent.is_some() && sent == parsed(read)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{is_same_template, wait_for_change_set};
    use crate::aws::test_script::Script;
    use crate::deploy::test_run::TestRun;

    #[tokio::test(start_paused = true)]
    async fn a_change_set_that_is_never_computed_is_deleted() -> Result<(), Box<dyn std::error::Error>> {
        let script = Script::new(|asked| match asked.action.as_str() {
            "DescribeChangeSet" => (
                200,
                "<DescribeChangeSetResponse><DescribeChangeSetResult><Status>CREATE_PENDING</Status>\
                 </DescribeChangeSetResult></DescribeChangeSetResponse>"
                    .to_owned(),
            ),
            _ => (200, "<DeleteChangeSetResponse/>".to_owned()),
        });
        let test = TestRun::new(&script).await?;
        let error = wait_for_change_set(&test.run, "paddle-network", "arn").await.err().ok_or("it ended")?;
        assert_eq!(error.to_string(), "the time limit was reached; paddle-network continues in AWS");
        let last = script.asked().pop().ok_or("nothing was asked")?;
        assert_eq!((last.action.as_str(), last.at >= Duration::from_mins(15)), ("DeleteChangeSet", true));
        assert!(last.at < Duration::from_mins(16), "{:?}", last.at);
        Ok(())
    }

    #[test]
    fn a_template_is_recognised_as_cloudformation_gives_it_back() {
        let sent = r#"{"Resources":{"A":{"Type":"T","Tags":["Messe München"]}}}"#;
        assert!(is_same_template(sent, sent));
        assert!(is_same_template(sent, r#"{"Resources":{"A":{"Type":"T","Tags":["Messe M?nchen"]}}}"#));
        assert!(is_same_template(sent, &sent.replace(':', ": ")));
        for (from, to) in [("\"T\"", "\"U\""), ("Messe", "messe"), ("\"A\"", "\"B\""), ("}}}", "}}")] {
            assert!(!is_same_template(sent, &sent.replace(from, to)), "{from} → {to}");
        }
        assert!(!is_same_template("no template", "no template"));
    }
}
