//! A forward proxy, as companies have them: requests are recorded, and forwarded or refused.

use std::io::{self, BufReader};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use super::http::{Message, Server, ask};

#[derive(Clone, Copy)]
enum Way {
    Forward,
    Refuse,
    TunnelTo(SocketAddr),
}

/// The proxy, on a free port of 127.0.0.1, gone when it is dropped.
pub struct ForwardProxy {
    server: Server,
    asked: Arc<Mutex<Vec<String>>>,
}

impl ForwardProxy {
    pub fn start() -> Self {
        Self::make(Way::Forward)
    }

    /// Asks for a password that no client has.
    pub fn refusing() -> Self {
        Self::make(Way::Refuse)
    }

    /// Connects clients with this address, whatever name they ask for.
    pub fn tunnelling_to(address: SocketAddr) -> Self {
        Self::make(Way::TunnelTo(address))
    }

    fn make(way: Way) -> Self {
        let asked: Arc<Mutex<Vec<String>>> = Arc::default();
        let heard = Arc::clone(&asked);
        let server = Server::start(move |stream| drop(serve(stream, way, &heard)));
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

fn serve(stream: &TcpStream, way: Way, heard: &Mutex<Vec<String>>) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    while let Some(mut request) = Message::read_head(&mut reader)? {
        request.read_request_body(&mut reader)?;
        heard.lock().unwrap().push(request.start.clone());
        match way {
            Way::Forward => {}
            Way::Refuse => {
                let question = [("Proxy-Authenticate", "Basic realm=\"company\"")];
                Message::answer(407, &question, b"").write(stream)?;
                continue;
            }
            Way::TunnelTo(address) => {
                Message::answer(200, &[], b"").write(stream)?;
                return tunnel(stream, address);
            }
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

/// Passes bytes in both directions until both sides have ended.
fn tunnel(stream: &TcpStream, address: SocketAddr) -> io::Result<()> {
    let server = TcpStream::connect(address)?;
    let pass = |mut from: &TcpStream, mut to: &TcpStream| {
        drop(io::copy(&mut from, &mut to));
        drop(to.shutdown(Shutdown::Write));
    };
    thread::scope(|scope| {
        scope.spawn(|| pass(stream, &server));
        pass(&server, stream);
    });
    Ok(())
}
