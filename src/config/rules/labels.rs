//! Labels, taints and tags: well formed, and none that is reserved.

use std::collections::BTreeMap;

use super::super::cluster::Taint;
use super::super::file::{ClusterFile, Entries, PoolFile, TaintFile};
use super::super::values::{LabelKey, LabelValue, TagKey, TagValue};
use crate::document::{At, Fault, Problems};
use crate::well_known::{GPU_RESOURCE, INSTANCE_TYPE_LABEL, INTERNAL_DOMAIN};

/// What this program itself puts on an Auto Scaling group: names, ownership, the autoscaler's settings, GPUs, scratch and EFA.
const OUR_TAGS: usize = 19;
/// What AWS allows on any resource.
const MOST_TAGS: usize = 50;

pub(super) fn build_labels(
    entries: &Entries,
    problems: &mut Problems,
) -> Option<BTreeMap<LabelKey, LabelValue>> {
    let mut labels = BTreeMap::new();
    for (key_text, value_text) in entries {
        let key: Option<LabelKey> = problems.parse(key_text);
        let value: Option<LabelValue> = problems.parse(value_text);
        let Some(key) = key else { continue };
        if let Err(fault) = check_label_owner(&key) {
            problems.add(key_text.position, fault);
        } else if let Some(value) = value {
            labels.insert(key, value);
        }
    }
    (labels.len() == entries.len()).then_some(labels)
}

/// A kubelet may set labels of a few Kubernetes domains only; with any other it does not start.
fn check_label_owner(key: &LabelKey) -> Result<(), Fault> {
    let of_kubernetes = key.is_under("kubernetes.io") || key.is_under("k8s.io");
    let allowed = key.is_under("node.kubernetes.io") || key.is_under("kubelet.kubernetes.io");
    if key.is_under(INTERNAL_DOMAIN) {
        return Err(Fault::new(format!(
            "the label '{key}' is reserved: {INTERNAL_DOMAIN}/ labels say what a node is made of"
        )));
    }
    if key.as_str() == INSTANCE_TYPE_LABEL {
        return Err(Fault::new(format!("the label '{key}' is reserved: the cluster sets it itself")));
    }
    // Until the last of these controllers is replaced, they would take a node with this label for a controller.
    if key.as_str() == "node.kubernetes.io/controller" {
        return Err(Fault::new(format!(
            "the label '{key}' is reserved: controllers of earlier versions of infra have it"
        )));
    }
    if of_kubernetes && !allowed {
        return Err(Fault::new(format!(
            "a node may not give itself the label '{key}': its kubelet would refuse to start"
        ))
        .help("use a domain of your own, or node.kubernetes.io/"));
    }
    Ok(())
}

pub(super) fn build_taints(
    list: &[At<TaintFile>],
    has_gpus: bool,
    problems: &mut Problems,
) -> Option<Vec<Taint>> {
    let mut taints: Vec<Taint> = Vec::new();
    for written in list {
        let taint = &written.value;
        let key: Option<LabelKey> = problems.parse(&taint.key);
        let value: Option<LabelValue> = match &taint.value {
            Some(value) => problems.parse(value),
            None => "".parse().ok(),
        };
        let (Some(key), Some(value)) = (key, value) else { continue };
        if key.is_under("kubernetes.io") || key.is_under("k8s.io") {
            let fault =
                Fault::new(format!("the taint '{key}' is reserved: Kubernetes sets and removes it itself"));
            problems.add(taint.key.position, fault.help("use a domain of your own"));
        } else if has_gpus && key.as_str() == GPU_RESOURCE {
            let fault = Fault::new(format!("GPU pools have the taint '{GPU_RESOURCE}' already"))
                .help("remove it here");
            problems.add(taint.key.position, fault);
        } else if taints.iter().any(|other| other.key == key) {
            let fault = Fault::new(format!("the taint '{key}' is named twice")).help(
                "the autoscaler reads one taint for each key, from a tag of the pool's Auto Scaling group; NoExecute keeps new pods away as well",
            );
            problems.add(written.position, fault);
        } else {
            taints.push(Taint { key, value, effect: taint.effect });
        }
    }
    (taints.len() == list.len()).then_some(taints)
}

pub(super) fn build_tags(file: &ClusterFile, problems: &mut Problems) -> Option<BTreeMap<TagKey, TagValue>> {
    let mut tags = BTreeMap::new();
    for (key, value) in &file.tags {
        let (key, value) = (problems.parse(key), problems.parse(value));
        if let (Some(key), Some(value)) = (key, value) {
            tags.insert(key, value);
        }
    }
    let room = MOST_TAGS - OUR_TAGS;
    if file.tags.len() > room {
        let fault = Fault::new(format!(
            "there are {} tags; AWS allows {MOST_TAGS}, {OUR_TAGS} of which are taken",
            file.tags.len()
        ));
        problems.add(
            file.tags.keys().next().and_then(|key| key.position),
            fault.help(format!("keep {room} at most")),
        );
    }
    (tags.len() == file.tags.len()).then_some(tags)
}

/// Labels and taints become tags of the pool's group, so that the autoscaler knows an empty pool.
pub(super) fn check_tag_room(pool: &PoolFile, tags: usize, problems: &mut Problems) {
    let needed = tags + pool.labels.len() + pool.taints.len() + OUR_TAGS;
    if tags + OUR_TAGS <= MOST_TAGS && needed > MOST_TAGS {
        let fault = Fault::new(format!(
            "pool '{}' would have {needed} AWS tags, {MOST_TAGS} are allowed: each label and taint becomes one",
            pool.name.value
        ));
        problems.add(
            pool.name.position,
            fault.help("remove some of its labels and taints, or some of the cluster's tags"),
        );
    }
}
