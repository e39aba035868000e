//! What a check found, as it is printed.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// The library that machines all-reduce with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Backend {
    /// GPUs, over EFA or TCP.
    Nccl,
    /// Processors, over TCP.
    Gloo,
}

impl Backend {
    /// The name by which PyTorch knows it.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Nccl => "nccl",
            Self::Gloo => "gloo",
        }
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// What machines talk to each other over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Transport {
    /// An elastic fabric adapter.
    Efa,
    /// Sockets.
    Tcp,
}

/// How fast the machines of a pool all-reduce with one another. The exit code is 3 if a machine has a `problem` or there is one in
/// `problems`, 0 otherwise. Bandwidths are bus bandwidths in GB/s, as nccl-tests defines them.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct NcclCheckReport {
    /// The pool.
    pub pool: String,
    /// The library that the machines all-reduced with.
    pub backend: Backend,
    /// The bytes of each all-reduce.
    pub bytes: u64,
    /// The bandwidth that machines of this type must reach over EFA; null if none is known, or they do not have EFA.
    pub expected: Option<f64>,
    /// The bandwidth of all machines together; null if it was not measured.
    pub together: Option<f64>,
    /// The machines of the pool.
    pub machines: Vec<MachineBandwidth>,
    /// Every pair that was measured.
    pub pairs: Vec<PairBandwidth>,
    /// What is wrong, but for what is wrong with a single machine.
    pub problems: Vec<String>,
}

/// A machine of the pool.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MachineBandwidth {
    /// The node.
    pub node: String,
    /// The EC2 instance; null if the node does not name it.
    pub instance: Option<String>,
    /// The instance type; null if the node does not name it.
    pub instance_type: Option<String>,
    /// What the machine talks to others over; null if it was not measured, or NCCL did not say.
    pub transport: Option<Transport>,
    /// The median bandwidth of its pairs; null if none was measured.
    pub median: Option<f64>,
    /// The bandwidth of its slowest pair; null if none was measured.
    pub slowest: Option<f64>,
    /// The other machine of its slowest pair; null if none was measured.
    pub slowest_with: Option<String>,
    /// Why the machine was not measured although nothing is wrong with it, such as a job that runs there; null otherwise.
    pub left_out: Option<String>,
    /// What is wrong with the machine; null if nothing is.
    pub problem: Option<String>,
}

/// Two machines.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PairBandwidth {
    /// The nodes.
    pub nodes: [String; 2],
    /// The bandwidth; null if it could not be measured.
    pub bandwidth: Option<f64>,
    /// Why it could not be measured; null if it was.
    pub problem: Option<String>,
}

impl NcclCheckReport {
    /// Whether nothing is wrong.
    #[must_use]
    pub(crate) fn is_healthy(&self) -> bool {
        self.problems.is_empty() && self.machines.iter().all(|machine| machine.problem.is_none())
    }
}

/// A bandwidth as a reader wants it: three digits that count, or whole numbers.
#[must_use]
pub(crate) fn gigabytes_in_words(bandwidth: f64) -> String {
    if bandwidth >= 100.0 {
        format!("{bandwidth:.0} GB/s")
    } else if bandwidth >= 10.0 {
        format!("{bandwidth:.1} GB/s")
    } else if bandwidth >= 1.0 {
        format!("{bandwidth:.2} GB/s")
    } else {
        format!("{bandwidth:.3} GB/s")
    }
}

#[cfg(test)]
mod tests {
    use super::gigabytes_in_words;

    #[test]
    fn bandwidths_have_the_digits_that_count() {
        let words: Vec<String> = [481.4, 96.42, 3.251, 0.0119].map(gigabytes_in_words).to_vec();
        assert_eq!(words, ["481 GB/s", "96.4 GB/s", "3.25 GB/s", "0.012 GB/s"]);
    }
}
