//! HTTP/1.1 as far as the stand-ins speak it: messages come in whole and go out whole, over whatever carries bytes.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use socket2::SockRef;

/// A request or an answer.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// The request line or the status line.
    pub start: String,
    pub headers: Vec<(String, String)>,
    /// The body with its chunks' sizes, to be passed on untouched.
    pub wire: Vec<u8>,
    /// The body as it was meant.
    pub body: Vec<u8>,
}

impl Message {
    pub fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Self {
        Self::new(format!("{method} {target} HTTP/1.1"), headers, body)
    }

    pub fn answer(status: u16, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let reason = if status < 400 { "OK" } else { "Refused" };
        Self::new(format!("HTTP/1.1 {status} {reason}"), headers, body)
    }

    fn new(start: String, headers: &[(&str, &str)], body: &[u8]) -> Self {
        let mut message = Self { start, wire: body.to_vec(), body: body.to_vec(), ..Self::default() };
        message.headers = headers.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        message.headers.push(("Content-Length".to_owned(), body.len().to_string()));
        message
    }

    pub fn method(&self) -> &str {
        self.start.split(' ').next().unwrap()
    }

    /// The path with its query.
    pub fn target(&self) -> &str {
        self.start.split(' ').nth(1).unwrap_or("/")
    }

    pub fn path(&self) -> &str {
        self.target().split('?').next().unwrap()
    }

    pub fn query(&self) -> &str {
        self.target().split_once('?').map_or("", |(_, query)| query)
    }

    pub fn status(&self) -> u16 {
        self.start.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0)
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(other, _)| other.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub fn has(&self, name: &str, value: &str) -> bool {
        self.header(name).is_some_and(|found| found.to_ascii_lowercase().contains(value))
    }

    pub fn remove_header(&mut self, name: &str) {
        self.headers.retain(|(other, _)| !other.eq_ignore_ascii_case(name));
    }

    pub fn set_header(&mut self, name: &str, value: &str) {
        self.remove_header(name);
        self.headers.push((name.to_owned(), value.to_owned()));
    }

    /// Start line and headers as they go out.
    pub fn head(&self) -> Vec<u8> {
        let headers: String =
            self.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        format!("{}\r\n{headers}\r\n", self.start).into_bytes()
    }

    pub fn write(&self, mut stream: impl Write) -> io::Result<()> {
        stream.write_all(&[self.head(), self.wire.clone()].concat())?;
        stream.flush()
    }

    /// A request without its body, or nothing if the other side has no more to ask.
    pub fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Self>> {
        let Some(start) = read_line(reader)? else { return Ok(None) };
        let mut message = Self { start, ..Self::default() };
        loop {
            let line = need_line(reader)?;
            if line.is_empty() {
                return Ok(Some(message));
            }
            let (name, value) = line.split_once(':').ok_or(io::ErrorKind::InvalidData)?;
            message.headers.push((name.to_owned(), value.trim().to_owned()));
        }
    }

    /// The body of a request whose head is read.
    pub fn read_request_body(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        if self.has("transfer-encoding", "chunked") {
            return self.read_chunks(reader);
        }
        let length = self.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        self.read_length(reader, length)
    }

    /// The whole answer to a request made with that method.
    pub fn read_answer(reader: &mut impl BufRead, method: &str) -> io::Result<Self> {
        let mut message = Self::read_head(reader)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        if method == "HEAD" || matches!(message.status(), 100..=199 | 204 | 304) {
            return Ok(message);
        }
        if message.has("transfer-encoding", "chunked") {
            message.read_chunks(reader)?;
        } else if let Some(length) = message.header("content-length").and_then(|length| length.parse().ok()) {
            message.read_length(reader, length)?;
        } else {
            reader.read_to_end(&mut message.body)?;
            message.wire.clone_from(&message.body);
            message.set_header("Content-Length", &message.body.len().to_string());
        }
        Ok(message)
    }

    fn read_length(&mut self, reader: &mut impl Read, length: usize) -> io::Result<()> {
        self.body = vec![0; length];
        reader.read_exact(&mut self.body)?;
        self.wire.clone_from(&self.body);
        Ok(())
    }

    fn read_chunks(&mut self, reader: &mut impl BufRead) -> io::Result<()> {
        loop {
            let line = need_line(reader)?;
            self.wire.extend([line.as_bytes(), b"\r\n"].concat());
            let digits = line.split(';').next().unwrap().trim();
            let size = usize::from_str_radix(digits, 16).map_err(|_| io::ErrorKind::InvalidData)?;
            if size == 0 {
                break;
            }
            let mut chunk = vec![0; size + 2];
            reader.read_exact(&mut chunk)?;
            self.wire.extend(&chunk);
            self.body.extend(&chunk[..size]);
        }
        loop {
            let trailer = need_line(reader)?;
            self.wire.extend([trailer.as_bytes(), b"\r\n"].concat());
            if trailer.is_empty() {
                return Ok(());
            }
        }
    }
}

fn read_line(reader: &mut impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    reader.read_until(b'\n', &mut bytes)?;
    match bytes.last() {
        None => Ok(None),
        Some(b'\n') => Ok(Some(String::from_utf8_lossy(&bytes).trim_end_matches(['\r', '\n']).to_owned())),
        Some(_) => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

fn need_line(reader: &mut impl BufRead) -> io::Result<String> {
    read_line(reader)?.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

/// One question over a stream, and its answer.
pub fn exchange(mut stream: impl Read + Write, request: &Message) -> io::Result<Message> {
    request.write(&mut stream)?;
    Message::read_answer(&mut BufReader::new(stream), request.method())
}

/// One question to `http://host:port` over a connection of its own.
pub fn ask(url: &str, mut request: Message) -> io::Result<Message> {
    let host = url.trim_start_matches("http://").trim_end_matches('/');
    if request.header("host").is_none() {
        request.set_header("Host", host);
    }
    request.set_header("Connection", "close");
    let stream = TcpStream::connect(host)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    exchange(stream, &request)
}

/// The value of a field of a form or of a query.
pub fn field(form: &str, name: &str) -> Option<String> {
    form.split('&').find_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (percent_decode(key) == name).then(|| percent_decode(value))
    })
}

/// The values of a field that is there several times, in order.
pub fn fields(form: &str, name: &str) -> Vec<String> {
    let pairs = form.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.filter(|(key, _)| percent_decode(key) == name).map(|(_, value)| percent_decode(value)).collect()
}

pub fn percent_decode(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        let (byte, length) = match (first, code) {
            (b'%', Some(code)) => (code, 3),
            (b'+', _) => (b' ', 1),
            _ => (first, 1),
        };
        bytes.push(byte);
        rest = &rest[length..];
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

pub fn percent_encode(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    text.bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// A free port of 127.0.0.1 and a thread for each connection to it. All of them end with it.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    stopping: AtomicBool,
    connections: Mutex<BTreeMap<usize, Arc<TcpStream>>>,
}

impl Server {
    pub fn start(serve: impl Fn(&TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared::default());
        let (state, serve) = (Arc::clone(&shared), Arc::new(serve));
        let acceptor = thread::spawn(move || {
            for (number, stream) in listener.incoming().flatten().enumerate() {
                let stream = Arc::new(stream);
                state.connections.lock().unwrap().insert(number, Arc::clone(&stream));
                if state.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let (state, serve) = (Arc::clone(&state), Arc::clone(&serve));
                thread::spawn(move || {
                    let _ = stream.set_nodelay(true);
                    serve(&stream);
                    // One that is to be reset must not end politely before.
                    let is_reset = SockRef::from(&*stream).linger().is_ok_and(|linger| linger.is_some());
                    if !is_reset {
                        let _ = stream.shutdown(Shutdown::Both);
                    }
                    state.connections.lock().unwrap().remove(&number);
                });
            }
        });
        Self { address, shared, acceptor: Some(acceptor) }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor, which waits for a connection.
        if TcpStream::connect(self.address).is_ok() {
            let _ = self.acceptor.take().unwrap().join();
        }
        for connection in self.shared.connections.lock().unwrap().values() {
            let _ = connection.shutdown(Shutdown::Both);
        }
    }
}
