//! Whether the keys on disk may replace those that the live controllers use.

use crate::blueprint::StackPart;
use crate::credentials::{Credentials, KEYS_IN_USE_FILE, KeySet, RotatedKey, Stage};
use crate::deploy::event::Refusal;
use crate::deploy::inputs::credential_digests::{CredentialDigests, Transition};
use crate::deploy::state::live::LiveCluster;
use crate::deploy::state::step::{NextStep, next_step};
use crate::well_known::CREDENTIALS_TAG;

/// Every refusal, in a stable order.
pub(super) fn refuse_credentials(credentials: &Credentials, live: &LiveCluster) -> Vec<Refusal> {
    let part = StackPart::ControlPlane;
    let Some(found) = live.tag(&part, CREDENTIALS_TAG) else { return Vec::new() };
    let (wanted, found) = (CredentialDigests::of(credentials), CredentialDigests::parse(found));
    let different = wanted.differences(&found);
    if !different.is_empty() {
        let early = RotatedKey::ALL.into_iter().filter(|key| different.contains(&key.name()));
        let early = early.filter_map(|key| help_for_early_retirement(key, credentials));
        let help = "copy credentials/ from whoever created the cluster or rotated its keys last; \
                    with other keys no node could join and no secret could be read";
        return vec![Refusal::new(
            format!(
                "credentials/ does not hold the keys this cluster runs on: {} differ",
                different.join(", ")
            ),
            [help.to_owned()].into_iter().chain(early).collect::<Vec<_>>().join("\n      "),
        )];
    }
    let stack = live.stacks.get(&part).map(|live| &live.stack);
    let being_updated = stack.filter(|stack| next_step(Some(&stack.status)) == NextStep::Follow);
    let refuse = |key: RotatedKey| match (wanted.transition(key.name(), &found), being_updated) {
        (Transition::TooEarly, _) => Some(refuse_early_switch(key, credentials)),
        // It is not known yet which keys every controller will have when that ends.
        (Transition::Safe { switches, drops }, Some(stack)) if switches || drops => Some(Refusal::new(
            format!("CloudFormation is still changing {}, and this would change its {key} keys", stack.name),
            "wait until `infra status` reports that it is complete, then run `infra up` again",
        )),
        _ => None,
    };
    RotatedKey::ALL.into_iter().filter_map(refuse).collect()
}

/// The previous key may have been dropped before step 2 of its rotation was deployed; a copy from before the rotation looks the same.
fn help_for_early_retirement(key: RotatedKey, credentials: &Credentials) -> Option<String> {
    let KeySet { current, stage } = credentials.keys_in_use(key);
    if stage != Stage::Settled || current == 1 {
        return None;
    }
    let step = KeySet { current, stage: Stage::Switched { previous: current - 1 } };
    Some(format!(
        "or, if you ran `--retire {key}` before `infra up` had deployed step 2: write `{key}: {step}` into \
         credentials/{KEYS_IN_USE_FILE}, then run `infra up`"
    ))
}

fn refuse_early_switch(key: RotatedKey, credentials: &Credentials) -> Refusal {
    let would = match key {
        RotatedKey::ServiceAccount => "would refuse tokens that the new key signs",
        RotatedKey::SecretsEncryption => "could not read Secrets that the new key encrypts",
    };
    let step = credentials.keys_in_use(key).before_switch();
    let first = step.map(|step| format!("write `{key}: {step}` into credentials/{KEYS_IN_USE_FILE}, "));
    Refusal::new(
        format!("step 1 of the rotation of {key} has not reached the controllers: they {would}"),
        format!(
            "{}run `infra up`, then `infra render credentials --rotate {key}` and `infra up` again",
            first.unwrap_or_default()
        ),
    )
}
