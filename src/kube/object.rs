//! Objects of any kind: applied, found by label, deleted.

use serde_json::Value;

use super::api_server::Propagation;
use super::job_set;
use super::list::Metadata;
use super::path::encode_path_segment;
use super::{ApiServer, KubeError};

/// What changes are marked with, so that two tools do not undo each other's.
const OUR_NAME: &str = "infra";
const APPLY: &str = "application/apply-patch+yaml";
const MERGE: &str = "application/merge-patch+json";

const RBAC: &str = "apis/rbac.authorization.k8s.io/v1";
const ADMISSION: &str = "apis/admissionregistration.k8s.io/v1";

/// Kinds of objects, where each is found, and whether it is in a namespace.
const KINDS: [(&str, &str, &str, bool); 18] = [
    ("ClusterRole", RBAC, "clusterroles", false),
    ("ClusterRoleBinding", RBAC, "clusterrolebindings", false),
    ("ConfigMap", "api/v1", "configmaps", true),
    ("Deployment", "apis/apps/v1", "deployments", true),
    ("Job", "apis/batch/v1", "jobs", true),
    (JOB_SET, job_set::GROUP_PATH, "jobsets", true),
    ("Namespace", "api/v1", "namespaces", false),
    ("PersistentVolume", "api/v1", "persistentvolumes", false),
    ("PersistentVolumeClaim", "api/v1", "persistentvolumeclaims", true),
    ("Pod", "api/v1", "pods", true),
    ("ResourceQuota", "api/v1", "resourcequotas", true),
    ("Role", RBAC, "roles", true),
    ("RoleBinding", RBAC, "rolebindings", true),
    ("Secret", "api/v1", "secrets", true),
    ("Service", "api/v1", "services", true),
    ("ServiceAccount", "api/v1", "serviceaccounts", true),
    ("ValidatingAdmissionPolicy", ADMISSION, "validatingadmissionpolicies", false),
    ("ValidatingAdmissionPolicyBinding", ADMISSION, "validatingadmissionpolicybindings", false),
];

/// The kind of a group of Jobs.
const JOB_SET: &str = "JobSet";

/// Which object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ObjectName {
    /// The kind of the object.
    pub kind: String,
    /// The namespace of the object; empty for what is in none.
    pub namespace: String,
    /// The name of the object.
    pub name: String,
}

impl ObjectName {
    /// The name of an object in a namespace.
    #[must_use]
    pub(crate) fn new(kind: &str, namespace: &str, name: &str) -> Self {
        Self { kind: kind.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() }
    }

    /// The name of a written object.
    #[must_use]
    pub(crate) fn of(object: &Value) -> Self {
        let text = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
        Self::new(text("/kind"), text("/metadata/namespace"), text("/metadata/name"))
    }

    fn path(&self) -> Result<String, KubeError> {
        Ok(format!(
            "{}/{}",
            collection_path(&self.kind, Some(&self.namespace))?,
            encode_path_segment(&self.name)
        ))
    }
}

impl std::fmt::Display for ObjectName {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{} {}", self.kind, self.name)
    }
}

/// Where objects of a kind are; without a namespace those of all.
fn collection_path(kind: &str, namespace: Option<&str>) -> Result<String, KubeError> {
    let Some((_, group, plural, namespaced)) = KINDS.iter().find(|(known, ..)| *known == kind) else {
        let reason = "this kind of object is not supported".to_owned();
        return Err(KubeError::Answer { path: kind.to_owned(), reason });
    };
    Ok(match namespace {
        Some(namespace) if *namespaced => {
            format!("/{group}/namespaces/{}/{plural}", encode_path_segment(namespace))
        }
        _ => format!("/{group}/{plural}"),
    })
}

impl ApiServer {
    /// Creates an object, or changes the existing one, by server-side apply. Fields of other managers are kept.
    pub(crate) async fn apply(&self, object: &Value) -> Result<Value, KubeError> {
        let path = format!("{}?fieldManager={OUR_NAME}&force=true", ObjectName::of(object).path()?);
        self.patch_json(&path, APPLY, object).await
    }

    /// Changes some fields of an existing object.
    pub(crate) async fn merge(&self, name: &ObjectName, change: &Value) -> Result<Value, KubeError> {
        self.patch_json(&name.path()?, MERGE, change).await
    }

    /// An object, if it exists.
    pub(crate) async fn object(&self, name: &ObjectName) -> Result<Option<Value>, KubeError> {
        self.get_json(&name.path()?).await
    }

    /// Deletes an object, and later what belongs to it; false if there was none. A JobSet stays until its pods are gone: a new one of
    /// the same name would run beside them.
    pub(crate) async fn delete_object(&self, name: &ObjectName) -> Result<bool, KubeError> {
        let propagation =
            if name.kind == JOB_SET { Propagation::Foreground } else { Propagation::Background };
        self.delete(&name.path()?, propagation).await
    }

    /// Every object of a kind that a label selector chooses, in one namespace or in all. A kind that the cluster does not know has none.
    pub(crate) async fn objects(
        &self,
        kind: &str,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<Value>, KubeError> {
        let query = format!("labelSelector={}", encode_path_segment(selector));
        match self.list(&collection_path(kind, namespace)?, Some(&query)).await {
            Err(error) if error.status() == Some(404) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// The names of all namespaces.
    pub(crate) async fn namespaces(&self) -> Result<Vec<String>, KubeError> {
        #[derive(serde::Deserialize)]
        struct Named {
            metadata: Metadata,
        }
        let found: Vec<Named> = self.list("/api/v1/namespaces", None).await?;
        Ok(found.into_iter().map(|namespace| namespace.metadata.name).collect())
    }

    /// Whether there is a namespace.
    pub(crate) async fn has_namespace(&self, name: &str) -> Result<bool, KubeError> {
        Ok(self.get_json(&format!("/api/v1/namespaces/{}", encode_path_segment(name))).await?.is_some())
    }
}
