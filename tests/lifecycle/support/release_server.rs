//! A stand-in for Flatcar's release server: it has the files that a test wants it to have.

use std::io::BufReader;
use std::net::TcpStream;
use std::sync::{Arc, LazyLock, Mutex};

use super::http::{Message, Server};

/// What the binary asks for instead of Flatcar's own server.
pub const RELEASE_SERVER_VARIABLE: &str = "INFRA_RELEASE_SERVER";

/// A server on a free port of 127.0.0.1, and what it was asked for.
pub struct ReleaseServer {
    server: Server,
    requests: Arc<Mutex<Vec<Message>>>,
}

impl ReleaseServer {
    /// The one that all tests share: every version has the drivers that Flatcar publishes.
    pub fn shared() -> &'static Self {
        static SHARED: LazyLock<ReleaseServer> = LazyLock::new(|| {
            ReleaseServer::having(|path| {
                ["535", "550", "570"].iter().any(|branch| {
                    path.ends_with(&format!("/flatcar-nvidia-drivers-{branch}.gz"))
                        || path.ends_with(&format!("/flatcar-nvidia-drivers-{branch}-open.gz"))
                })
            })
        });
        &SHARED
    }

    /// It has the files whose paths pass this test.
    pub fn having(has: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self::start(move |path| Some(if has(path) { 200 } else { 404 }))
    }

    /// Every answer has this status.
    pub fn answering(status: u16) -> Self {
        Self::start(move |_| Some(status))
    }

    /// It takes connections, and answers nothing.
    pub fn silent() -> Self {
        Self::start(|_| None)
    }

    fn start(status: impl Fn(&str) -> Option<u16> + Send + Sync + 'static) -> Self {
        let requests: Arc<Mutex<Vec<Message>>> = Arc::default();
        let seen = Arc::clone(&requests);
        let server = Server::start(move |stream: &TcpStream| {
            let mut reader = BufReader::new(stream);
            while let Ok(Some(request)) = Message::read_head(&mut reader) {
                let status = status(request.path());
                seen.lock().unwrap().push(request);
                let sent = status.map(|status| Message::answer(status, &[], b"").write(stream));
                if sent.is_some_and(|sent| sent.is_err()) {
                    return;
                }
            }
        });
        Self { server, requests }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// What it was asked for so far.
    pub fn requests(&self) -> Vec<Message> {
        self.requests.lock().unwrap().clone()
    }
}
