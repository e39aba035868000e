//! One connection to a port of a pod, as if it came from inside the pod, over the API server's WebSocket.
//!
//! The kubelet's own protocol of channels: a WebSocket for each connection, without the SPDY that kubectl tunnels to have many in one.

use bytes::{Buf, Bytes};

use super::message::one_line;
use super::path::encode;
use super::web_socket::{MessageReceiver, MessageSender};
use super::{ApiServer, KubeError};

const PROTOCOL: &str = "v4.channel.k8s.io";
const LARGEST_PIECE: usize = 128 << 10;
const DATA: u8 = 0;
const ERROR: u8 = 1;
/// Both channels begin with the number of the port.
const PORT_BYTES: usize = 2;

/// What goes to the port. The connection ends when both halves are dropped; half of it cannot.
#[derive(Debug)]
pub(crate) struct PortInput {
    sender: MessageSender,
}

/// What comes from the port.
#[derive(Debug)]
pub(crate) struct PortOutput {
    receiver: MessageReceiver,
    pod: String,
    /// Bytes of the port's number that are still to come, by channel.
    preamble: [usize; 2],
    _sender: MessageSender,
}

impl ApiServer {
    /// Connects to a port of a running pod. Whether something listens there shows with the first bytes.
    pub(crate) async fn forward_port(
        &self,
        namespace: &str,
        pod: &str,
        port: u16,
    ) -> Result<(PortInput, PortOutput), KubeError> {
        let path =
            format!("/api/v1/namespaces/{}/pods/{}/portforward?ports={port}", encode(namespace), encode(pod));
        let socket = self.open_web_socket(&path, PROTOCOL).await?;
        let output = PortOutput {
            receiver: socket.receiver,
            pod: pod.to_owned(),
            preamble: [PORT_BYTES; 2],
            _sender: socket.sender.clone(),
        };
        Ok((PortInput { sender: socket.sender }, output))
    }
}

impl PortInput {
    /// Sends bytes; waits while the other side is slower.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Result<(), KubeError> {
        for piece in bytes.chunks(LARGEST_PIECE) {
            self.sender.send(&[&[DATA], piece]).await?;
        }
        Ok(())
    }
}

impl PortOutput {
    /// The next bytes; none at the end. Nothing is lost if the wait is given up.
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, KubeError> {
        while let Some(mut message) = self.receiver.next().await? {
            if !message.has_remaining() {
                continue;
            }
            let channel = message.get_u8();
            let Some(preamble) = self.preamble.get_mut(usize::from(channel)) else { continue };
            let skipped = (*preamble).min(message.remaining());
            *preamble -= skipped;
            message.advance(skipped);
            match channel {
                _ if !message.has_remaining() => {}
                DATA => return Ok(Some(message)),
                ERROR => {
                    let reason = one_line(&String::from_utf8_lossy(&message));
                    return Err(KubeError::Pod { pod: self.pod.clone(), reason });
                }
                _ => {}
            }
        }
        Ok(None)
    }
}
