//! What a user of a team may do: everything about jobs, data and secrets in the team's namespace, reading nodes, and nothing else.
//!
//! Rights to create roles are not among them: a user could bind rights to another name, and keep them after being removed.

use serde_json::{Value, json};

use crate::well_known::{MANAGER, MANAGER_LABEL};

pub(super) const RBAC_GROUP: &str = "rbac.authorization.k8s.io";
/// The role of a team's users in their namespace.
pub(super) const MEMBER_ROLE: &str = "infra:team-member";
/// The role of a team's users in the cluster.
pub(super) const READER_ROLE: &str = "infra:team-node-reader";

const CHANGE: [&str; 7] = ["get", "list", "watch", "create", "patch", "update", "delete"];
const READ: [&str; 3] = ["get", "list", "watch"];

/// The roles, the same for all teams.
pub(super) fn team_roles() -> [Value; 2] {
    let role = |name: &str, rules: Value| {
        json!({
            "apiVersion": format!("{RBAC_GROUP}/v1"),
            "kind": "ClusterRole",
            "metadata": {"name": name, "labels": {MANAGER_LABEL: MANAGER}},
            "rules": rules,
        })
    };
    let allow = |group: &str, resources: &[&str], verbs: &[&str]| json!({"apiGroups": [group], "resources": resources, "verbs": verbs});
    let member = json!([
        allow("", &["configmaps", "pods", "secrets", "services"], &CHANGE),
        allow("", &["pods/log", "pods/proxy"], &["get"]),
        // A terminal, files and ports of a pod; over WebSocket that is a get, over SPDY a create.
        allow("", &["pods/exec", "pods/portforward"], &["get", "create"]),
        allow("", &["events", "persistentvolumeclaims", "resourcequotas"], &READ),
        allow("", &["namespaces"], &["get"]),
        // Deleting a job looks for what a seed image's job has besides.
        allow("", &["serviceaccounts"], &READ),
        allow(RBAC_GROUP, &["roles", "rolebindings"], &READ),
        allow("apps", &["deployments"], &CHANGE),
        allow("batch", &["jobs"], &CHANGE),
        allow("jobset.x-k8s.io", &["jobsets"], &CHANGE),
        allow("kueue.x-k8s.io", &["localqueues", "workloads"], &READ),
    ]);
    [role(MEMBER_ROLE, member), role(READER_ROLE, json!([allow("", &["nodes"], &READ)]))]
}
