//! What a KMS key's policy says about one use of the key: whether IAM policies of an account can allow it, and whether the policy allows
//! it to the whole account by itself.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

/// The policy of a key.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub(crate) struct KeyPolicy {
    statement: OneOrMany<KeyPolicyStatement>,
}

/// One use of a key by a role that is not named in its policy, as the roles of a new cluster are not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyUse<'a> {
    /// The action, as IAM names it.
    pub action: &'a str,
    /// The account of the role.
    pub account: &'a str,
    /// The host name of the service through which the key is used.
    pub through: &'a str,
}

/// What a policy says about a use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The use is allowed.
    Allowed,
    /// That depends on conditions that are not understood here, by the names of their keys.
    Conditional(Vec<String>),
    /// Nothing allows the use.
    NotAllowed,
    /// A statement denies the use.
    Denied,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany<T> {
    Many(Vec<T>),
    One(T),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct KeyPolicyStatement {
    effect: Effect,
    principal: Option<Value>,
    not_principal: Option<Value>,
    action: Option<OneOrMany<String>>,
    not_action: Option<OneOrMany<String>>,
    /// Operators, the keys that each compares, and the values.
    #[serde(default)]
    condition: BTreeMap<String, BTreeMap<String, OneOrMany<Value>>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
enum Effect {
    Allow,
    Deny,
}

/// Whether conditions hold.
enum Condition {
    Holds,
    Fails,
    Unknown(Vec<String>),
}

impl KeyPolicy {
    /// Reads a policy as KMS gives it.
    pub(crate) fn parse(text: &str) -> Result<Self, serde_json::Error> {
        serde_json::from_str(text)
    }

    /// Whether a policy of IAM can allow the use: the key's policy allows it to the account, or to everyone.
    pub(crate) fn delegates(&self, key_use: KeyUse<'_>) -> Verdict {
        self.judge(key_use, |principal| {
            names_everyone(principal) || names_account(principal, key_use.account)
        })
    }

    /// Whether the use is allowed without any policy of IAM: the key's policy allows it to everyone.
    pub(crate) fn allows_everyone(&self, key_use: KeyUse<'_>) -> Verdict {
        self.judge(key_use, names_everyone)
    }

    fn judge(&self, key_use: KeyUse<'_>, is_allowed_to: impl Fn(&Value) -> bool) -> Verdict {
        let mut is_allowed = false;
        let (mut of_allow, mut of_deny) = (Vec::new(), Vec::new());
        for statement in self.statement.list().iter().filter(|statement| statement.is_about(key_use.action)) {
            let is_concerned = match statement.effect {
                Effect::Allow => statement.principal.as_ref().is_some_and(&is_allowed_to),
                Effect::Deny => statement.denies_account(key_use.account),
            };
            if !is_concerned {
                continue;
            }
            match (statement.effect, statement.conditions(key_use)) {
                (Effect::Deny, Condition::Holds) => return Verdict::Denied,
                (Effect::Deny, Condition::Unknown(keys)) => of_deny.extend(keys),
                (Effect::Allow, Condition::Holds) => is_allowed = true,
                (Effect::Allow, Condition::Unknown(keys)) => of_allow.extend(keys),
                (_, Condition::Fails) => {}
            }
        }
        let mut unknown = of_deny;
        if !is_allowed {
            if of_allow.is_empty() {
                return Verdict::NotAllowed;
            }
            unknown.extend(of_allow);
        }
        unknown.sort();
        unknown.dedup();
        if unknown.is_empty() { Verdict::Allowed } else { Verdict::Conditional(unknown) }
    }
}

impl KeyPolicyStatement {
    fn is_about(&self, action: &str) -> bool {
        let is_named = |list: &OneOrMany<String>| list.list().iter().any(|pattern| is_like(pattern, action));
        match (&self.action, &self.not_action) {
            (Some(named), _) => is_named(named),
            (None, Some(others)) => !is_named(others),
            (None, None) => false,
        }
    }

    /// Whether a denial is about roles of the account that it does not name.
    fn denies_account(&self, account: &str) -> bool {
        match (&self.principal, &self.not_principal) {
            (Some(principal), _) => names_everyone(principal) || names_account(principal, account),
            // Everyone but those who are listed.
            (None, Some(principal)) => !names_everyone(principal),
            (None, None) => false,
        }
    }

    fn conditions(&self, key_use: KeyUse<'_>) -> Condition {
        let mut unknown = Vec::new();
        for (operator, comparisons) in &self.condition {
            for (key, expected) in comparisons {
                match key_use
                    .value_of(key)
                    .and_then(|value| compare_condition(operator, &value, expected.list()))
                {
                    Some(true) => {}
                    Some(false) => return Condition::Fails,
                    None => unknown.push(key.clone()),
                }
            }
        }
        if unknown.is_empty() { Condition::Holds } else { Condition::Unknown(unknown) }
    }
}

impl KeyUse<'_> {
    /// What the request has for a condition's key; none if that is not known.
    fn value_of(&self, key: &str) -> Option<String> {
        match key.to_ascii_lowercase().as_str() {
            "kms:viaservice" => Some(self.through.to_owned()),
            "kms:calleraccount" | "aws:principalaccount" => Some(self.account.to_owned()),
            "kms:grantisforawsresource" => Some(is_like("kms:CreateGrant", self.action).to_string()),
            "aws:securetransport" => Some("true".to_owned()),
            "aws:principalisawsservice" => Some("false".to_owned()),
            _ => None,
        }
    }
}

/// A comparison of IAM; none if the operator is not known.
fn compare_condition(operator: &str, value: &str, expected: &[Value]) -> Option<bool> {
    let operator = operator.trim_start_matches("ForAnyValue:").trim_start_matches("ForAllValues:");
    let operator = operator.strip_suffix("IfExists").unwrap_or(operator);
    let is_any = |test: &dyn Fn(&str) -> bool| {
        expected.iter().any(|expected| match expected {
            Value::String(text) => test(text),
            other => test(&other.to_string()),
        })
    };
    match operator {
        "StringEquals" => Some(is_any(&|text| text == value)),
        "StringNotEquals" => Some(!is_any(&|text| text == value)),
        "StringEqualsIgnoreCase" | "Bool" => Some(is_any(&|text| text.eq_ignore_ascii_case(value))),
        "StringNotEqualsIgnoreCase" => Some(!is_any(&|text| text.eq_ignore_ascii_case(value))),
        "StringLike" => Some(is_any(&|text| is_like(text, value))),
        "StringNotLike" => Some(!is_any(&|text| is_like(text, value))),
        _ => None,
    }
}

/// The principals of AWS that a policy names: `"*"`, or `{"AWS": …}` with one or several.
fn names_any(principal: &Value, test: impl Fn(&str) -> bool) -> bool {
    let named = match principal {
        Value::Object(kinds) => kinds.get("AWS").unwrap_or(&Value::Null),
        other => other,
    };
    match named {
        Value::String(one) => test(one),
        Value::Array(many) => many.iter().filter_map(Value::as_str).any(test),
        _ => false,
    }
}

fn names_everyone(principal: &Value) -> bool {
    names_any(principal, |name| name == "*")
}

/// Whether a whole account is named: by its number or by the ARN of its root.
fn names_account(principal: &Value, account: &str) -> bool {
    let root = format!(":iam::{account}:root");
    names_any(principal, |name| name == account || (name.starts_with("arn:") && name.ends_with(&root)))
}

/// Whether a text fits a pattern with `*` and `?`, in any case.
fn is_like(pattern: &str, text: &str) -> bool {
    fn fits(pattern: &[u8], text: &[u8]) -> bool {
        match (pattern.split_first(), text.split_first()) {
            (None, None) => true,
            (Some((b'*', rest)), _) if fits(rest, text) => true,
            (Some((b'*', _)), Some((_, rest))) => fits(pattern, rest),
            (Some((b'?', pattern)), Some((_, text))) => fits(pattern, text),
            (Some((expected, pattern)), Some((found, text))) => {
                expected.eq_ignore_ascii_case(found) && fits(pattern, text)
            }
            _ => false,
        }
    }
    fits(pattern.as_bytes(), text.as_bytes())
}

impl<T> OneOrMany<T> {
    fn list(&self) -> &[T] {
        match self {
            Self::Many(list) => list,
            Self::One(one) => std::slice::from_ref(one),
        }
    }
}
