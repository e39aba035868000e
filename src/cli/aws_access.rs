//! How AWS is reached: the flags, and the runtime that calls need.

use std::future::Future;
use std::net::SocketAddr;

use anyhow::Context;
use clap::Args;

use super::Session;
use super::failure::Refusal;
use crate::aws::{AwsConnection, Clients};
use crate::config::Cluster;
use crate::kube::Address;

/// The address that calls to the cluster's API go to instead of its load balancer: for a tunnel, and for tests.
const API_SERVER_VARIABLE: &str = "INFRA_API_SERVER";

/// Which account and region.
#[derive(Args, Debug)]
#[command(next_help_heading = "AWS options")]
pub(super) struct AwsOptions {
    /// Use this profile of the AWS configuration files
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,
    /// Use this region instead of that of cluster.yaml
    #[arg(long, value_name = "REGION")]
    region: Option<String>,
    /// Reach every AWS service there
    #[arg(long, value_name = "URL")]
    endpoint_url: Option<String>,
}

impl AwsOptions {
    /// Clients for the cluster's region, unless another was asked for.
    pub(super) async fn connect(&self, cluster: &Cluster, session: &Session) -> Clients {
        self.connect_to(Some(cluster.region.as_str()), session).await
    }

    /// Clients for a region, unless another was asked for.
    pub(super) async fn connect_to(&self, region: Option<&str>, session: &Session) -> Clients {
        Clients::connect(&AwsConnection {
            profile: self.profile.clone(),
            region: self.region.clone().or_else(|| region.map(str::to_owned)),
            endpoint_url: self.endpoint_url.clone(),
            release_server: session.release_server.clone(),
            tempo: session.tempo,
        })
        .await
    }
}

/// Runs what waits for AWS.
pub(super) fn block_on<T>(work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("starting the runtime")?;
    let result = runtime.block_on(work);
    // A question that was never answered would keep its thread, and the process with it.
    runtime.shutdown_background();
    result
}

/// Where the API server is, if the environment says so.
pub(super) fn api_address() -> anyhow::Result<Option<Address>> {
    let Ok(text) = std::env::var(API_SERVER_VARIABLE) else { return Ok(None) };
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Some(Address::Socket(address)));
    }
    match text.rsplit_once(':').map(|(name, port)| (name, port.parse())) {
        Some((name, Ok(port))) if !name.is_empty() => Ok(Some(Address::Host { name: name.to_owned(), port })),
        _ => Err(Refusal::invalid(format!("{API_SERVER_VARIABLE} is '{text}'"))
            .help("it looks like 127.0.0.1:6443 or host:6443")
            .into()),
    }
}
