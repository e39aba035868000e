//! A forward proxy, as companies have them: requests are recorded, and forwarded or refused.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::sync::{Arc, Mutex};

use super::http::{Message, Server, ask};

/// The proxy, on a free port of 127.0.0.1, gone when it is dropped.
pub struct ForwardProxy {
    server: Server,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    pub fn start() -> Self {
        Self::make(false)
    }

    /// Asks for a password that no client has.
    pub fn refusing() -> Self {
        Self::make(true)
    }

    fn make(refuses: bool) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        let server = Server::start(move |stream| drop(serve(stream, refuses, &heard)));
        Self { server, asked }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// The first line of every request.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, refuses: bool, heard: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(mut request) = Message::read_head(&mut reader)? {
        request.read_request_body(&mut reader)?;
        heard.lock().unwrap().push(request.start.clone());
        if refuses {
            Message::answer(407, &[("Proxy-Authenticate", "Basic realm=\"company\"")], b"").write(stream)?;
            continue;
        }
        // Only plain HTTP is passed on: what the stand-ins speak.
        let target = request.target().to_owned();
        let rest =
            target.strip_prefix("http://").unwrap_or_else(|| panic!("not for a proxy: {}", request.start));
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        request.start = request.start.replace(&target, &format!("/{path}"));
        let mut answer = ask(&format!("http://{host}"), request)?;
        answer.remove_header("connection");
        answer.write(stream)?;
    }
    Ok(())
}
