//! A stack as CloudFormation describes it, for the unit tests of this layer.

use std::collections::BTreeMap;

use crate::aws::Stack;

/// The ARN of the network stack of the cluster of [`super::test_run`].
pub(crate) const NETWORK_ARN: &str = "arn:aws:cloudformation:us-west-2:111122223333:stack/paddle-network/1";

/// The network stack with nothing in it.
pub(crate) fn network_stack(status: &str) -> Stack {
    Stack {
        name: "paddle-network".to_owned(),
        arn: NETWORK_ARN.to_owned(),
        status: status.into(),
        reason: None,
        parameters: BTreeMap::new(),
        outputs: BTreeMap::new(),
        tags: BTreeMap::new(),
        protected: false,
        created: None,
        updated: None,
    }
}
