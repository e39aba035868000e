//! A cluster's nodes as they would be if every machine had joined: what EC2 lists into Node objects.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::http::{Message, ask};
use super::{authorization, element};

pub const KUBELET_VERSION: &str = "v1.36.3";

/// Where the machines of a cluster are found.
#[derive(Clone)]
pub struct Machines {
    pub url: String,
    pub account: String,
    pub region: String,
    pub cluster: String,
}

impl Machines {
    /// The nodes of all running controllers and pool machines, with the GPUs that each machine of a pool has.
    pub fn nodes(&self, gpus: &BTreeMap<String, u32>) -> io::Result<Vec<Value>> {
        let who = authorization(&self.account, &self.region, "ec2");
        let headers =
            [("Authorization", who.as_str()), ("Content-Type", "application/x-www-form-urlencoded")];
        let form = b"Action=DescribeInstances&Version=2016-11-15";
        let answer = ask(&self.url, Message::request("POST", "/", &headers, form))?;
        if answer.status() != 200 {
            return Err(io::Error::other(answer.text()));
        }
        let instances = answer.text();
        let instances = instances.split("<instanceId>").skip(1);
        Ok(instances.filter_map(|instance| self.node(instance, gpus)).collect())
    }

    /// The node of an instance, which is given as XML from its id on.
    fn node(&self, instance: &str, gpus: &BTreeMap<String, u32>) -> Option<Value> {
        let tags = element(instance, "tagSet")?;
        let tag = |key: &str| element(tags.split_once(&format!("<key>{key}</key>"))?.1, "value");
        let state = element(element(instance, "instanceState")?, "name")?;
        let role = tag("infra:role")?;
        if state != "running" || tag("infra:cluster") != Some(self.cluster.as_str()) {
            return None;
        }
        let id = instance.split('<').next()?;
        let name = element(instance, "privateDnsName")?;
        let zone = element(instance, "availabilityZone")?;
        let mut labels = json!({
            "kubernetes.io/hostname": name,
            "node.kubernetes.io/instance-type": element(instance, "instanceType")?,
            "topology.kubernetes.io/region": self.region,
            "topology.kubernetes.io/zone": zone,
        });
        let mut resources = json!({"cpu": "4", "memory": "16Gi", "pods": "110"});
        if let Some(pool) = role.strip_prefix("pool-") {
            labels["infra.internal/pool"] = json!(pool);
            if let Some(count) = gpus.get(pool) {
                labels["infra.internal/gpu-count"] = json!(count.to_string());
                labels["infra.internal/gpu-model"] = json!("a10g");
                resources["nvidia.com/gpu"] = json!(count.to_string());
                // Somewhat less than a g5.12xlarge has for each of its GPUs.
                resources["cpu"] = json!((count * 8).to_string());
                resources["memory"] = json!(format!("{}Gi", count * 45));
            }
        } else if role == "controller" {
            labels["node-role.kubernetes.io/control-plane"] = json!("");
        } else {
            return None;
        }
        Some(json!({
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": name, "uid": id, "labels": labels},
            "spec": {"providerID": format!("aws:///{zone}/{id}")},
            "status": {
                "addresses": [{"type": "InternalIP", "address": element(instance, "privateIpAddress")?}],
                "allocatable": resources,
                "capacity": resources,
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "nodeInfo": {"kubeletVersion": KUBELET_VERSION},
            },
        }))
    }
}
