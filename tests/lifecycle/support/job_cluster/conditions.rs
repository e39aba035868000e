//! Conditions in the status of an object, and the timestamps that they carry.

use serde_json::{Value, json};

/// What is to be true or false of an object.
pub struct Condition<'a> {
    pub kind: &'a str,
    pub is_true: bool,
    pub reason: &'a str,
    pub message: &'a str,
}

impl<'a> Condition<'a> {
    pub fn holds(kind: &'a str, reason: &'a str, message: &'a str) -> Self {
        Self { kind, is_true: true, reason, message }
    }

    pub fn fails(kind: &'a str, reason: &'a str, message: &'a str) -> Self {
        Self { kind, is_true: false, reason, message }
    }
}

/// The condition of this type, if it is true.
pub fn true_condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object["status"]["conditions"].as_array()?;
    conditions.iter().find(|condition| condition["type"] == kind && condition["status"] == "True")
}

/// Sets a condition and says whether that changed anything. Only another status has another time, and what was never true is not
/// recorded as false.
pub fn set_condition(object: &mut Value, condition: &Condition<'_>, now: impl FnOnce() -> String) -> bool {
    let status = &mut object["status"];
    if !status["conditions"].is_array() {
        if !condition.is_true {
            return false;
        }
        status["conditions"] = json!([]);
    }
    let wanted = if condition.is_true { "True" } else { "False" };
    let conditions = status["conditions"].as_array_mut().unwrap();
    let Some(known) = conditions.iter_mut().find(|known| known["type"] == condition.kind) else {
        if condition.is_true {
            conditions.push(json!({"type": condition.kind, "status": wanted, "reason": condition.reason,
                                   "message": condition.message, "lastTransitionTime": now()}));
        }
        return condition.is_true;
    };
    if known["status"] == wanted
        && known["reason"] == condition.reason
        && known["message"] == condition.message
    {
        return false;
    }
    if known["status"] != wanted {
        known["lastTransitionTime"] = json!(now());
    }
    known["status"] = json!(wanted);
    known["reason"] = json!(condition.reason);
    known["message"] = json!(condition.message);
    true
}
