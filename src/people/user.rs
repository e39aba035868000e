//! Users of teams. Their rights in the cluster are the only record of them: whoever has none is no user, whatever certificate they have.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

use super::error::PeopleError;
use super::names::{TeamName, UserName};
use super::rights::{MEMBER_ROLE, RBAC_GROUP, READER_ROLE, team_roles};
use crate::kube::{ApiServer, ObjectName};
use crate::well_known::{MANAGER, MANAGER_LABEL, TEAM_LABEL, USER_LABEL, VALID_UNTIL_ANNOTATION};

/// A user of a team.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct UserReport {
    /// The name of the user.
    pub name: String,
    /// The team.
    pub team: String,
    /// The name in the user's certificate, by which Kubernetes knows the user.
    pub common_name: String,
    /// The last day of the certificate.
    pub valid_until: String,
    /// When the user was added.
    pub created: String,
    #[serde(skip)]
    objects: UserObjects,
}

/// The objects that give a user rights.
#[derive(Clone, Debug)]
struct UserObjects {
    in_namespace: ObjectName,
    in_cluster: ObjectName,
}

impl UserObjects {
    fn new(team: &str, user: &str) -> Self {
        Self {
            in_namespace: ObjectName::new("RoleBinding", team, &format!("infra:user:{user}")),
            in_cluster: ObjectName::new("ClusterRoleBinding", "", &format!("infra:user:{team}:{user}")),
        }
    }
}

impl UserReport {
    fn of(binding: &Value) -> Self {
        let text =
            |pointer: &str| binding.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
        let label = |key: &str| binding["metadata"]["labels"][key].as_str().unwrap_or_default().to_owned();
        let until = &binding["metadata"]["annotations"][VALID_UNTIL_ANNOTATION];
        let (name, team) = (label(USER_LABEL), text("/metadata/namespace"));
        Self {
            objects: UserObjects::new(&team, &name),
            name,
            team,
            common_name: text("/subjects/0/name"),
            valid_until: until.as_str().unwrap_or_default().to_owned(),
            created: text("/metadata/creationTimestamp"),
        }
    }

    /// Ends the rights of the user, at once.
    pub(crate) async fn delete_rights(&self, api: &ApiServer) -> Result<(), PeopleError> {
        api.delete_object(&self.objects.in_namespace).await?;
        api.delete_object(&self.objects.in_cluster).await?;
        Ok(())
    }
}

/// Every user, of one team or of all.
pub(crate) async fn list_users(
    api: &ApiServer,
    team: Option<&TeamName>,
) -> Result<Vec<UserReport>, PeopleError> {
    let selector = format!("{MANAGER_LABEL}={MANAGER},{USER_LABEL}");
    let bindings = api.objects("RoleBinding", team.map(TeamName::as_str), &selector).await?;
    let mut users: Vec<UserReport> = bindings.iter().map(UserReport::of).collect();
    users.sort_by(|one, other| (&one.team, &one.name).cmp(&(&other.team, &other.name)));
    Ok(users)
}

/// A user of a team, if there is one of this name.
pub(crate) async fn find_user(
    api: &ApiServer,
    team: &TeamName,
    user: &UserName,
) -> Result<Option<UserReport>, PeopleError> {
    let users = list_users(api, Some(team)).await?;
    Ok(users.into_iter().find(|found| found.name == user.as_str()))
}

/// Refuses a team that does not exist.
pub(crate) async fn expect_team(api: &ApiServer, team: &TeamName) -> Result<(), PeopleError> {
    let namespace = api.object(&ObjectName::new("Namespace", "", team.as_str())).await?;
    match namespace {
        Some(namespace) if namespace["metadata"]["labels"][TEAM_LABEL] == team.as_str() => Ok(()),
        Some(_) => Err(PeopleError::ForeignNamespace { namespace: team.to_string() }),
        None => Err(PeopleError::NoTeam { team: team.to_string() }),
    }
}

/// Gives rights to whoever has a certificate with this common name. Rights that another certificate of the user had, end.
pub(crate) async fn add_user(
    api: &ApiServer,
    team: &TeamName,
    user: &UserName,
    common_name: &str,
    valid_until: &str,
) -> Result<(), PeopleError> {
    for role in team_roles() {
        api.apply(&role).await?;
    }
    let UserObjects { in_namespace, in_cluster } = UserObjects::new(team.as_str(), user.as_str());
    for (name, role) in [(in_cluster, READER_ROLE), (in_namespace, MEMBER_ROLE)] {
        let mut metadata = json!({
            "name": name.name,
            "labels": {MANAGER_LABEL: MANAGER, TEAM_LABEL: team, USER_LABEL: user},
            "annotations": {VALID_UNTIL_ANNOTATION: valid_until},
        });
        if !name.namespace.is_empty() {
            metadata["namespace"] = json!(name.namespace);
        }
        api.apply(&json!({
            "apiVersion": format!("{RBAC_GROUP}/v1"),
            "kind": name.kind,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC_GROUP, "kind": "ClusterRole", "name": role},
            "subjects": [{"apiGroup": RBAC_GROUP, "kind": "User", "name": common_name}],
        }))
        .await?;
    }
    Ok(())
}
