//! Names of teams and users, and of what belongs to them.

use crate::config::values::checked_text;
use crate::document::Fault;
use crate::job::values::Namespace;

/// Names are parts of a certificate's subject, which has 64 characters for each.
const LONGEST_TEAM: usize = 50;
const LONGEST_USER: usize = 40;

checked_text!(
    /// The name of a team, which is that of its namespace.
    TeamName,
    check_team
);

checked_text!(
    /// The name of a user.
    UserName,
    check_user
);

fn check_team(text: &str) -> Result<(), Fault> {
    text.parse::<Namespace>()?;
    if text.len() > LONGEST_TEAM {
        return Err(Fault::new(format!("the namespace '{text}' has {} characters", text.len()))
            .help(format!("that of a team has at most {LONGEST_TEAM}")));
    }
    if text == "default" || text.starts_with("kube-") {
        return Err(Fault::new(format!("the namespace '{text}' is the cluster's own"))
            .help("choose another name for the team"));
    }
    Ok(())
}

fn check_user(text: &str) -> Result<(), Fault> {
    let refuse = |reason: String| {
        Err(Fault::new(reason).help(format!(
            "the name of a user has 1 to {LONGEST_USER} lower-case letters, digits, '-' and '.', beginning and ending with a letter or digit"
        )))
    };
    if text.is_empty() {
        return refuse("the name of the user is empty".to_owned());
    }
    if let Some(bad) = text.chars().find(|c| !matches!(c, 'a'..='z' | '0'..='9' | '-' | '.')) {
        return refuse(format!("the name '{text}' has a {bad:?} in it"));
    }
    if text.len() > LONGEST_USER {
        return refuse(format!("the name '{text}' has {} characters", text.len()));
    }
    if text.starts_with(['-', '.']) || text.ends_with(['-', '.']) {
        return refuse(format!("the name '{text}' begins or ends with '-' or '.'"));
    }
    Ok(())
}

/// The directory of a team on the file system.
pub(crate) fn team_directory(team: &str) -> String {
    format!("/teams/{team}")
}

/// The group that the certificates of a team's users are of.
pub(crate) fn team_group(team: &TeamName) -> String {
    format!("infra:team:{team}")
}

#[cfg(test)]
mod tests {
    use super::{TeamName, UserName};

    #[test]
    fn names_of_the_cluster_and_nonsense_are_refused() {
        for text in ["default", "kube-system", "Vision", "", &"a".repeat(51)] {
            assert!(text.parse::<TeamName>().is_err(), "{text}");
        }
        for text in ["", "Ada", "ada@example.com", "-a", "a.", "system:masters", &"a".repeat(41)] {
            assert!(text.parse::<UserName>().is_err(), "{text}");
        }
        assert!("vision".parse::<TeamName>().is_ok() && "ada.lovelace".parse::<UserName>().is_ok());
    }
}
