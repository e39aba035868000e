//! Operations that take an hour, scripted on a clock that runs ahead: what no stand-in can show.

use std::time::Duration;

use super::test_cloudformation::{
    NAME, OURS, ScriptedEvent, TARGET, cloudformation, describe_events, describe_stack, of_resource,
    of_stack, refuse, run,
};
use super::watch::{OperationBeginning, watch_stack};
use crate::aws::End;
use crate::aws::test_script::{Asked, Script};
use crate::deploy::error::DeployError;
use crate::deploy::event::{Event, StackOperation};
use crate::deploy::test_run::TestRun;

type TestResult = Result<(), Box<dyn std::error::Error>>;

#[tokio::test(start_paused = true)]
async fn an_hour_is_watched_with_few_calls_that_keep_their_distance() -> TestResult {
    let script = Script::new(|asked| {
        let story = [
            of_stack(0, "CREATE_IN_PROGRESS", "ours"),
            of_resource(5, "Vpc", "CREATE_IN_PROGRESS"),
            of_resource(3000, "Vpc", "CREATE_COMPLETE"),
            of_stack(3600, "CREATE_COMPLETE", "ours"),
        ];
        cloudformation(&story, asked)
    });
    let run = run(&script, OURS).await?;
    assert_eq!(run.result?.end, End::Good);
    let asked = script.asked();
    let of_stack = asked.iter().filter(|asked| asked.action == "DescribeStacks").count();
    let events = asked.iter().filter(|asked| asked.action == "DescribeStackEvents");
    let times: Vec<Duration> = events.map(|asked| asked.at).collect();
    assert!(times.len() <= 3600 / 10 + 8, "{} calls", times.len());
    assert_eq!(of_stack, (times.len() - 1) / 6, "the stack is read with every sixth read of its events");
    let gaps: Vec<u128> = times.windows(2).map(|pair| pair[1].saturating_sub(pair[0]).as_millis()).collect();
    assert!(gaps.iter().all(|gap| *gap >= 2000), "{gaps:?}");
    assert!(gaps.windows(2).all(|pair| pair[0] <= pair[1]), "they grow: {gaps:?}");
    assert!(gaps.last().is_some_and(|gap| *gap <= 10_000));
    let told = run.events.iter().filter(|event| matches!(event, Event::Resource { .. })).count();
    assert_eq!(told, 2, "each event is reported once");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_update_that_cleans_up_has_not_ended() -> TestResult {
    let script = Script::new(|asked| {
        let story = [
            of_stack(0, "UPDATE_IN_PROGRESS", "ours"),
            of_stack(60, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "ours"),
            of_stack(600, "UPDATE_COMPLETE", "ours"),
        ];
        cloudformation(&story, asked)
    });
    let followed = run(&script, OURS).await?.result?;
    assert_eq!((followed.end, followed.status.as_str()), (End::Good, "UPDATE_COMPLETE"));
    assert!(script.asked().last().is_some_and(|asked| asked.at >= Duration::from_mins(10)));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_an_older_operation_left_is_not_taken_for_ours() -> TestResult {
    // CloudFormation shows the new operation only after a while.
    let script = Script::new(|asked| {
        let story = [
            of_stack(0, "UPDATE_IN_PROGRESS", "old"),
            of_stack(0, "UPDATE_ROLLBACK_COMPLETE", "old"),
            of_stack(30, "UPDATE_IN_PROGRESS", "ours"),
            of_stack(90, "UPDATE_COMPLETE", "ours"),
        ];
        cloudformation(&story, asked)
    });
    let followed = run(&script, OURS).await?.result?;
    assert_eq!(followed.end, End::Good);
    assert_eq!(followed.events.len(), 2);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn events_without_tokens_are_ours_after_a_minute() -> TestResult {
    let script = Script::new(|asked| {
        let story = [of_stack(0, "UPDATE_IN_PROGRESS", ""), of_stack(90, "UPDATE_COMPLETE", "")];
        cloudformation(&story, asked)
    });
    assert_eq!(run(&script, OURS).await?.result?.end, End::Good);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_rollback_belongs_to_the_change_it_undoes() -> TestResult {
    let story = || {
        [
            of_stack(0, "CREATE_IN_PROGRESS", "ours"),
            of_resource(20, "Vpc", "CREATE_FAILED"),
            of_stack(21, "ROLLBACK_IN_PROGRESS", "ours"),
            of_resource(30, "Vpc", "DELETE_COMPLETE"),
            of_stack(40, "ROLLBACK_COMPLETE", "ours"),
        ]
    };
    let script = Script::new(move |asked| cloudformation(&story(), asked));
    let run_of_ours = run(&script, OURS).await?;
    let undone =
        |event: &Event| matches!(event, Event::UndoBegan { operation: StackOperation::RollBack, .. });
    assert_eq!(run_of_ours.events.iter().filter(|event| undone(event)).count(), 1);
    let followed = run_of_ours.result?;
    assert_eq!((followed.end, followed.events.len()), (End::RolledBack, 5));
    // A run that attaches later sees all of it too.
    let later = run(&script, OperationBeginning::Newest).await?.result?;
    assert_eq!(later.events.len(), 5);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn pages_are_read_to_the_beginning_of_the_operation_and_no_further() -> TestResult {
    let script = Script::new(|asked| {
        let mut story: Vec<ScriptedEvent> =
            (0..40).map(|_| of_resource(0, "Old", "CREATE_COMPLETE")).collect();
        story.push(of_stack(0, "UPDATE_IN_PROGRESS", "ours"));
        story.extend((0..25).map(|_| of_resource(0, "New", "UPDATE_COMPLETE")));
        story.push(of_stack(0, "UPDATE_COMPLETE", "ours"));
        describe_events(&story, asked, 10)
    });
    let followed = run(&script, OURS).await?.result?;
    assert_eq!(followed.events.len(), 27);
    assert_eq!(script.asked().len(), 3, "three pages hold the operation, four more its past");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn throttling_is_waited_out_and_an_expired_token_is_not() -> TestResult {
    let story = || [of_stack(0, "CREATE_IN_PROGRESS", "ours"), of_stack(100, "CREATE_COMPLETE", "ours")];
    let throttled = Script::new(move |asked| {
        if asked.before < 5 { refuse(400, "Throttling") } else { cloudformation(&story(), asked) }
    });
    assert_eq!(run(&throttled, OURS).await?.result?.end, End::Good);

    let expired = Script::new(move |asked| {
        if asked.before < 2 { cloudformation(&story(), asked) } else { refuse(403, "ExpiredToken") }
    });
    let error = run(&expired, OURS).await?.result.err().ok_or("it went on")?;
    assert!(
        matches!(&error, DeployError::Aws(error) if error.cause == crate::aws::Cause::Credentials),
        "{error}"
    );
    assert_eq!(expired.asked().len(), 3);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_time_limit_ends_the_watch_and_names_what_continues() -> TestResult {
    let script = Script::new(|asked| cloudformation(&[of_stack(0, "CREATE_IN_PROGRESS", "ours")], asked));
    let error = run(&script, OURS).await?.result.err().ok_or("it ended")?;
    assert_eq!(error.to_string(), "the time limit was reached; paddle-network continues in AWS");
    let calls = script.asked().len();
    assert!((820..=860).contains(&calls), "{calls} calls in two hours");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_interruption_leaves_the_operation_to_aws_or_cancels_it() -> TestResult {
    let answer = |asked: &Asked| match asked.action.as_str() {
        "DescribeStackEvents" => describe_events(&[of_stack(0, "UPDATE_IN_PROGRESS", "ours")], asked, 100),
        "DescribeStacks" => (200, describe_stack("UPDATE_IN_PROGRESS")),
        _ => (200, "<CancelUpdateStackResponse/>".to_owned()),
    };
    for cancels in [false, true] {
        let script = Script::new(answer);
        let mut test = TestRun::new(&script).await?;
        test.run.cancel_on_interrupt = cancels;
        let interrupter = test.interrupter.clone();
        tokio::spawn(async move {
            tokio::time::sleep(Duration::from_secs(30)).await;
            interrupter.interrupt();
        });
        let error = watch_stack(&test.run, TARGET, OURS).await.err().ok_or("it ended")?;
        assert!(matches!(&error, DeployError::StillRunning { running, .. } if running == &[NAME]), "{error}");
        let cancelled = script.asked().iter().filter(|asked| asked.action == "CancelUpdateStack").count();
        assert_eq!(cancelled, usize::from(cancels));
    }
    Ok(())
}
