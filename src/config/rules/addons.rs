//! Parts of the cluster that can be left out.

use super::super::cluster::{Addons, Monitoring};
use super::super::file::{AddonsFile, MonitoringFile, MonitoringSettings};
use crate::document::{At, Problems};

pub(super) fn build_addons(file: &AddonsFile, problems: &mut Problems) -> Option<Addons> {
    Some(Addons {
        cluster_autoscaler: file.cluster_autoscaler,
        metrics_server: file.metrics_server,
        job_set: file.job_set,
        monitoring: build_monitoring(&file.monitoring, problems)?,
    })
}

/// `None` is a failed build, `Some(None)` no monitoring.
fn build_monitoring(file: &At<MonitoringFile>, problems: &mut Problems) -> Option<Option<Monitoring>> {
    match &file.value {
        MonitoringFile::Wanted(wanted) => Some(wanted.then_some(Monitoring { remote_write: None })),
        MonitoringFile::Settings(MonitoringSettings { remote_write }) => {
            let url = problems.take(file.position, remote_write.parse());
            url.map(|url| Some(Monitoring { remote_write: Some(url) }))
        }
    }
}
