//! What Kubernetes says when a client may not do something, in fewer words.

use std::fmt;

/// Who may not do what, and where.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Denial<'a> {
    user: &'a str,
    verb: &'a str,
    resource: &'a str,
    /// Nothing for the whole cluster.
    pub(super) namespace: Option<&'a str>,
}

impl<'a> Denial<'a> {
    /// Reads `pods is forbidden: User "ada" cannot list resource "pods" in API group "" in the namespace "default"`. Refusals of quotas and
    /// of admission rules have other words.
    pub(super) fn of(message: &'a str) -> Option<Self> {
        let quoted = |after: &str| message.split_once(after)?.1.split_once('"').map(|(text, _)| text);
        let verb = message.split_once("\" cannot ")?.1.split_once(' ')?.0;
        Some(Self {
            user: quoted("User \"")?,
            verb,
            resource: quoted("resource \"")?,
            namespace: quoted("in the namespace \""),
        })
    }
}

impl fmt::Display for Denial<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { user, verb, resource, namespace } = self;
        write!(formatter, "user '{user}' may not {verb} {resource} ")?;
        match namespace {
            Some(namespace) => write!(formatter, "in namespace {namespace}"),
            None => formatter.write_str("in the whole cluster"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Denial;

    #[test]
    fn who_what_and_where_are_read() {
        let message = r#"jobsets.jobset.x-k8s.io is forbidden: User "ada:1f" cannot list resource "jobsets" in API group "jobset.x-k8s.io" in the namespace "default""#;
        let said = Denial::of(message).map(|denial| denial.to_string());
        assert_eq!(said.as_deref(), Some("user 'ada:1f' may not list jobsets in namespace default"));
        let message = r#"nodes is forbidden: User "ada:1f" cannot list resource "nodes" in API group "" at the cluster scope"#;
        let said = Denial::of(message).map(|denial| denial.to_string());
        assert_eq!(said.as_deref(), Some("user 'ada:1f' may not list nodes in the whole cluster"));
    }

    #[test]
    fn other_refusals_keep_their_words() {
        for message in [
            r#"pods "a" is forbidden: exceeded quota: team, requested: requests.nvidia.com/gpu=4"#,
            r#"pods "a" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true)"#,
            r#"nodes is forbidden: User "ada" cannot list"#,
        ] {
            assert_eq!(Denial::of(message), None, "{message}");
        }
    }
}
