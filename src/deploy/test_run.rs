//! The context of a run for the unit tests of this layer: a small cluster, a scripted AWS, two hours, and a receiver of events.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::event::{Event, Progress};
use super::run::Run;
use crate::aws::test_script::Script;
use crate::blueprint::Blueprint;
use crate::config;
use crate::waiting::{Interrupter, Waiting};

/// A run that has not begun.
pub(crate) struct TestRun {
    pub(crate) run: Run,
    pub(crate) blueprint: Blueprint,
    pub(crate) interrupter: Interrupter,
    events: Arc<Mutex<Vec<Event>>>,
}

impl TestRun {
    pub(crate) async fn new(script: &Script) -> Result<Self, Box<dyn std::error::Error>> {
        let text = "{clusterName: paddle, externalDNSName: a.example.com, region: us-west-2, availabilityZones: [us-west-2a], \
                    kmsKeyArn: 'arn:aws:kms:us-west-2:111122223333:key/1'}";
        let events = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&events);
        let (interrupter, waiting) = Waiting::new(Some(Duration::from_hours(2)));
        let blueprint = Blueprint::new(config::validate(Path::new("cluster.yaml"), text)?.value)?;
        let run = Run {
            clients: script.clients().await,
            cluster: Some(blueprint.cluster.clone()),
            progress: Progress::new(move |event| {
                heard.lock().unwrap_or_else(PoisonError::into_inner).push(event);
            }),
            waiting,
            cancel_on_interrupt: false,
        };
        Ok(Self { run, blueprint, interrupter, events })
    }

    /// Everything that was reported so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
