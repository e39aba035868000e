//! Operations whose events are lost, late, or never written.

use std::time::Duration;

use super::test_cloudformation::{
    OURS, ScriptedEvent, cloudformation, lossy_cloudformation, of_resource, of_stack, refuse, run,
};
use crate::aws::End;
use crate::aws::test_script::{Asked, Script};
use crate::deploy::event::Event;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Operations, from their first event to their last, with how each ends and what becomes of its stack.
fn operations() -> [(Vec<ScriptedEvent>, End, &'static str); 4] {
    [
        (
            vec![of_stack(0, "CREATE_IN_PROGRESS", "ours"), of_stack(100, "CREATE_COMPLETE", "ours")],
            End::Good,
            "CREATE_COMPLETE",
        ),
        (
            vec![
                of_stack(0, "UPDATE_IN_PROGRESS", "ours"),
                of_stack(100, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "ours"),
                of_stack(200, "UPDATE_COMPLETE", "ours"),
            ],
            End::Good,
            "UPDATE_COMPLETE",
        ),
        (
            vec![
                of_stack(0, "CREATE_IN_PROGRESS", "ours"),
                of_resource(50, "Vpc", "CREATE_FAILED"),
                of_stack(51, "ROLLBACK_IN_PROGRESS", "ours"),
                of_stack(100, "ROLLBACK_COMPLETE", "ours"),
            ],
            End::RolledBack,
            "ROLLBACK_COMPLETE",
        ),
        (
            vec![of_stack(0, "DELETE_IN_PROGRESS", "ours"), of_stack(100, "DELETE_COMPLETE", "ours")],
            End::Deleted,
            "DELETE_COMPLETE",
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn an_operation_whose_last_event_never_comes_ends_with_its_stack() -> TestResult {
    for number in 0..4 {
        let script = Script::new(move |asked| {
            let (story, ..) = &operations()[number];
            lossy_cloudformation(&story[..story.len() - 1], story, asked)
        });
        let (story, end, status) = &operations()[number];
        let followed = run(&script, OURS).await?.result?;
        assert_eq!((followed.end, followed.status.as_str()), (*end, *status));
        assert_eq!(followed.events.len(), story.len() - 1, "{status}");
        let (ended, last) = (Duration::from_secs(story.last().ok_or("no story")?.at), script.asked().pop());
        let late = last.ok_or("nothing was asked")?.at.saturating_sub(ended);
        assert!(late <= Duration::from_secs(70), "{status}: {late:?} after the end");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_late_behind_another_is_still_found() -> TestResult {
    // The reason appears at 60 seconds, but is listed after events that were read before.
    let truth = || {
        vec![
            of_stack(0, "UPDATE_IN_PROGRESS", "ours"),
            of_resource(60, "Broken", "UPDATE_FAILED"),
            of_resource(20, "Other", "UPDATE_COMPLETE"),
            of_stack(20, "UPDATE_ROLLBACK_IN_PROGRESS", "ours"),
            of_stack(100, "UPDATE_ROLLBACK_COMPLETE", "ours"),
        ]
    };
    for is_last_lost in [false, true] {
        let script = Script::new(move |asked| {
            let truth = truth();
            lossy_cloudformation(&truth[..truth.len() - usize::from(is_last_lost)], &truth, asked)
        });
        let followed = run(&script, OURS).await?;
        let told = |event: &&Event| matches!(event, Event::Resource { resource, .. } if resource == "Broken");
        assert_eq!(followed.events.iter().filter(told).count(), 1);
        let ended = followed.result?;
        assert_eq!(ended.end, End::RolledBack);
        assert!(ended.events.iter().any(|event| event.logical_id == "Broken" && event.is_failure()));
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_end_of_an_older_operation_is_not_the_end_of_ours() -> TestResult {
    // Neither events nor the stack show for 40 seconds that an update has begun.
    let script = Script::new(|asked| {
        let story = [
            of_stack(0, "CREATE_IN_PROGRESS", "old"),
            of_stack(0, "CREATE_COMPLETE", "old"),
            of_stack(40, "UPDATE_IN_PROGRESS", "ours"),
            of_stack(300, "UPDATE_COMPLETE", "ours"),
        ];
        cloudformation(&story, asked)
    });
    let followed = run(&script, OURS).await?.result?;
    assert_eq!((followed.status.as_str(), followed.events.len()), ("UPDATE_COMPLETE", 2));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stack_that_cannot_be_read_does_not_end_the_watch() -> TestResult {
    let story = || [of_stack(0, "CREATE_IN_PROGRESS", "ours"), of_stack(600, "CREATE_COMPLETE", "ours")];
    let script = Script::new(move |asked| match asked.action.as_str() {
        "DescribeStacks" => refuse(403, "AccessDenied"),
        _ => cloudformation(&story(), asked),
    });
    assert_eq!(run(&script, OURS).await?.result?.end, End::Good);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_stack_without_resources_is_deleted_without_events() -> TestResult {
    let gone = |asked: &Asked| {
        let message = "Stack with id paddle-network does not exist";
        if asked.at < Duration::from_secs(100) {
            lossy_cloudformation(&[], &[of_stack(0, "REVIEW_IN_PROGRESS", "")], asked)
        } else {
            (400, refuse(400, "ValidationError").1.replace("no<", &format!("{message}<")))
        }
    };
    let still_described = |asked: &Asked| {
        let stack = [of_stack(0, "REVIEW_IN_PROGRESS", ""), of_stack(100, "DELETE_COMPLETE", "")];
        lossy_cloudformation(&stack[..1], &stack, asked)
    };
    for script in [Script::new(gone), Script::new(still_described)] {
        let followed = run(&script, OURS).await?.result?;
        assert_eq!((followed.end, followed.events.len()), (End::Deleted, 0));
        assert!(script.asked().last().is_some_and(|asked| asked.at < Duration::from_mins(3)));
    }
    Ok(())
}
