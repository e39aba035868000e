//! A port of this machine that leads to a port of a pod: each connection to it becomes one to the pod.
//!
//! In: the API server and which pod is meant, which may change while connections come. Out: an address for browsers, and what went wrong.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinSet;

use super::port_forward::PodPort;
use super::{ApiServer, KubeError};

/// Connections at the same time; each needs two open files, and processes may usually open 1024.
const MOST_CONNECTIONS: usize = 200;

/// A port of this machine, which only programs of this machine reach.
#[derive(Debug)]
pub(crate) struct LocalPort {
    listener: TcpListener,
    address: SocketAddr,
}

impl LocalPort {
    /// Listens on a port, or on one that is free.
    pub(crate) async fn open(port: Option<u16>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.unwrap_or(0))).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it listens.
    #[must_use]
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Passes connections on until no more can be accepted, and ends them when it is dropped. A connection waits while there is no pod;
    /// one that fails is closed and reported to `failures`, and the next ones are passed on all the same.
    pub(crate) async fn forward(
        &self,
        api: &ApiServer,
        target: &watch::Receiver<Option<PodPort>>,
        failures: &mpsc::UnboundedSender<KubeError>,
    ) -> io::Error {
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        let mut connections = JoinSet::new();
        loop {
            while connections.try_join_next().is_some() {}
            let place = Arc::clone(&places).acquire_owned().await;
            let client = match self.listener.accept().await {
                Ok((client, _)) => client,
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(error) => return error,
            };
            let (api, target, failures) = (api.clone(), target.clone(), failures.clone());
            connections.spawn(async move {
                if let Err(error) = pass_on(&api, target, client).await {
                    // Nobody listens any more if the command ends.
                    let _ = failures.send(error);
                }
                drop(place);
            });
        }
    }
}

async fn pass_on(
    api: &ApiServer,
    mut target: watch::Receiver<Option<PodPort>>,
    client: TcpStream,
) -> Result<(), KubeError> {
    let Ok(Some(target)) = target.wait_for(Option::is_some).await.map(|target| target.clone()) else {
        return Ok(());
    };
    api.connect_to_port(&target).await?.relay(client).await
}
