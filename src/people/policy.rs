//! What nobody may do in a team's namespace: admission policies for all teams, which apply to pods whoever creates them, so also to
//! those of Jobs and JobSets. Pod Security at the level `baseline` refuses the rest: privileged pods, host networks, host paths.

use serde_json::{Value, json};

use crate::well_known::{MANAGER, MANAGER_LABEL, TEAM_LABEL};

const API_VERSION: &str = "admissionregistration.k8s.io/v1";

/// Rules of pods: an expression that must hold, and what is said if it does not. Of what an update cannot change only the creation is
/// judged, so that pods which were there before can still be changed and deleted.
const POD_RULES: [(&str, &str); 4] = [
    (
        "request.operation != 'CREATE' || !has(object.spec.volumes) || object.spec.volumes.all(volume, has(volume.configMap) \
         || has(volume.secret) || has(volume.emptyDir) || has(volume.projected) || has(volume.downwardAPI) \
         || has(volume.persistentVolumeClaim))",
        "pods of a team may mount claims, and volumes of configMap, secret, emptyDir, projected and downwardAPI; no other volumes",
    ),
    (
        "!has(object.spec.tolerations) || object.spec.tolerations.all(toleration, (has(toleration.key) && toleration.key != '' \
         && !toleration.key.startsWith('node-role.kubernetes.io/')) || (request.operation == 'UPDATE' \
         && has(oldObject.spec.tolerations) && toleration in oldObject.spec.tolerations))",
        "pods of a team may not tolerate taints of the control plane, nor all taints",
    ),
    (
        "request.operation != 'CREATE' || !has(object.spec.nodeName) || object.spec.nodeName == ''",
        "pods of a team may not name their node; the scheduler places them",
    ),
    (
        "request.operation != 'CREATE' || !has(object.spec.priorityClassName) \
         || !object.spec.priorityClassName.startsWith('system-')",
        "pods of a team may not have a priority of the system",
    ),
];

/// Rules of Services: one of another type opens a port of every machine, or a load balancer that costs money.
const SERVICE_RULES: [(&str, &str); 1] = [(
    "(!has(object.spec.type) || object.spec.type == 'ClusterIP') && (!has(object.spec.externalIPs) || object.spec.externalIPs.size() == 0)",
    "Services of a team are of type ClusterIP, without external addresses",
)];

/// The policies and their bindings, the same for all teams.
pub(super) fn admission_policies() -> Vec<Value> {
    let pods = admission_policy("infra-team-pods", "pods", &POD_RULES);
    let services = admission_policy("infra-team-services", "services", &SERVICE_RULES);
    pods.into_iter().chain(services).collect()
}

fn admission_policy(name: &str, resource: &str, rules: &[(&str, &str)]) -> [Value; 2] {
    let labels = json!({MANAGER_LABEL: MANAGER});
    let validations: Vec<Value> = rules
        .iter()
        .map(|(expression, message)| json!({"expression": expression, "message": message}))
        .collect();
    [
        json!({
            "apiVersion": API_VERSION,
            "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name, "labels": labels},
            "spec": {
                "failurePolicy": "Fail",
                "matchConstraints": {
                    "namespaceSelector": {"matchExpressions": [{"key": TEAM_LABEL, "operator": "Exists"}]},
                    "resourceRules": [{
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE", "UPDATE"],
                        "resources": [resource],
                    }],
                },
                "validations": validations,
            },
        }),
        json!({
            "apiVersion": API_VERSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name, "labels": labels},
            "spec": {"policyName": name, "validationActions": ["Deny"]},
        }),
    ]
}
