//! Taints of nodes and tolerations of pods, and the scheduler's rule about both.

use serde::{Deserialize, Serialize};

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub(crate) enum TaintEffect {
    /// They are not placed on the node.
    NoSchedule,
    /// They are placed on the node only if there is no other.
    PreferNoSchedule,
    /// They are not placed on the node, and running ones are evicted.
    NoExecute,
    /// An effect that this program does not know.
    #[default]
    #[serde(other)]
    Unknown,
}

/// Keeps pods away from a node.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default)]
pub(crate) struct Taint {
    /// The key of the taint.
    pub key: String,
    /// The value of the taint.
    pub value: String,
    /// What the taint does.
    pub effect: TaintEffect,
}

/// Lets a pod onto nodes with a taint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Toleration {
    key: String,
    #[serde(flatten)]
    matching: Matching,
    effect: TaintEffect,
    #[serde(rename = "tolerationSeconds", skip_serializing_if = "Option::is_none")]
    seconds: Option<u32>,
}

/// Which values of a taint are tolerated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "operator")]
enum Matching {
    Equal { value: String },
    Exists,
}

impl Taint {
    /// Whether pods that do not tolerate the taint are never placed on its node.
    #[must_use]
    pub(crate) fn is_binding(&self) -> bool {
        self.effect != TaintEffect::PreferNoSchedule
    }
}

impl Toleration {
    /// Tolerates this very taint.
    #[must_use]
    pub(crate) fn of(taint: &Taint) -> Self {
        let matching = Matching::Equal { value: taint.value.clone() };
        Self { key: taint.key.clone(), matching, effect: taint.effect, seconds: None }
    }

    /// Tolerates every value of a taint.
    #[must_use]
    pub(crate) fn of_any_value(key: &str, effect: TaintEffect) -> Self {
        Self { key: key.to_owned(), matching: Matching::Exists, effect, seconds: None }
    }

    /// Tolerates every value of a taint for a number of seconds; then the pod is evicted.
    #[must_use]
    pub(crate) fn for_a_while(key: &str, effect: TaintEffect, seconds: u32) -> Self {
        Self { seconds: Some(seconds), ..Self::of_any_value(key, effect) }
    }

    /// Whether the taint does not keep the pod away.
    #[must_use]
    pub(crate) fn tolerates(&self, taint: &Taint) -> bool {
        let has_value = match &self.matching {
            Matching::Equal { value } => *value == taint.value,
            Matching::Exists => true,
        };
        has_value && self.key == taint.key && self.effect == taint.effect
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Taint, TaintEffect, Toleration};

    fn taint(value: &str, effect: &str) -> Result<Taint, serde_json::Error> {
        serde_json::from_value(json!({"key": "team", "value": value, "effect": effect}))
    }

    #[test]
    fn a_toleration_is_written_as_the_api_reads_it() -> Result<(), serde_json::Error> {
        let exact = serde_json::to_string(&Toleration::of(&taint("a", "NoExecute")?))?;
        assert_eq!(exact, r#"{"key":"team","operator":"Equal","value":"a","effect":"NoExecute"}"#);
        let any = serde_json::to_string(&Toleration::of_any_value("team", TaintEffect::NoSchedule))?;
        assert_eq!(any, r#"{"key":"team","operator":"Exists","effect":"NoSchedule"}"#);
        Ok(())
    }

    #[test]
    fn key_value_and_effect_must_match() -> Result<(), serde_json::Error> {
        let exact = Toleration::of(&taint("a", "NoSchedule")?);
        assert!(exact.tolerates(&taint("a", "NoSchedule")?));
        assert!(!exact.tolerates(&taint("b", "NoSchedule")?));
        assert!(!exact.tolerates(&taint("a", "NoExecute")?));
        let any = Toleration::of_any_value("team", TaintEffect::NoSchedule);
        assert!(any.tolerates(&taint("b", "NoSchedule")?));
        assert!(!any.tolerates(&taint("b", "Strange")?));
        Ok(())
    }

    #[test]
    fn an_unknown_effect_is_binding_and_a_preference_is_not() -> Result<(), serde_json::Error> {
        assert!(taint("a", "Strange")?.is_binding());
        assert!(taint("a", "NoSchedule")?.is_binding());
        assert!(!taint("a", "PreferNoSchedule")?.is_binding());
        Ok(())
    }
}
