//! A proxy between the binary and the stand-in for AWS: it records each call, and lets it fail if a test asks for that.

use std::io::{self, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use socket2::SockRef;

use super::http::{Message, Server, ask};
use super::protocols::{self, Refusal};

/// Longer than any client waits.
const LONGEST_SILENCE: Duration = Duration::from_secs(300);

/// One call that reached the proxy.
#[derive(Clone, Debug)]
pub struct Call {
    /// `service:Operation`.
    pub operation: String,
    pub at: Instant,
    /// The stack or the change set it is about; of services without forms the path.
    pub target: Option<String>,
    /// The account that must own the bucket, if the call demands one.
    pub bucket_owner: Option<String>,
    pub outcome: CallOutcome,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallOutcome {
    Passed,
    Faulted,
}

/// How a call fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Throttled,
    /// 503, in the service's own words.
    ServerError,
    /// 500, in the service's own words.
    InternalError,
    /// The connection ends, and AWS has never heard of the call.
    CutBeforeForwarding,
    /// The same with a reset instead of a polite end.
    ResetBeforeForwarding,
    /// AWS has done what was asked, and its answer is lost.
    CutAfterForwarding,
    /// AWS has done what was asked, and nothing is said until the client gives up or is gone.
    SilentAfterForwarding,
    ExpiredToken,
    /// A signed link is years old when it arrives.
    OldLink,
    AccessDenied,
    /// The service's clock is 25 minutes ahead of the caller's, and it says so.
    Skewed,
    /// The body of the answer takes that long.
    SlowBody(Duration),
    /// Half of the body of the answer, then the connection ends.
    TruncatedBody,
    /// Nothing is said for that long, or until all is healed, and nothing is done; then the connection ends.
    Hang(Duration),
}

/// Which calls of an operation fail, counted from one since the fault was set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    First(usize),
    Nth(usize),
    /// This many, from that one on.
    From(usize, usize),
    Always,
}

/// The proxy, on a free port of 127.0.0.1, gone when it is dropped.
pub struct FaultProxy {
    server: Server,
    state: Arc<State>,
}

struct State {
    upstream: String,
    ledger: Mutex<Ledger>,
    called: Condvar,
}

#[derive(Default)]
struct Ledger {
    calls: Vec<Call>,
    rules: Vec<Rule>,
    interventions: Vec<Intervention>,
    /// Answers that were kept back.
    kept_back: usize,
    /// How often all was healed.
    healings: usize,
    in_flight: usize,
    most_in_flight: usize,
}

/// What someone else does just before AWS gets a call of an operation.
#[derive(Clone)]
struct Intervention {
    operation: String,
    action: Arc<dyn Fn() + Send + Sync>,
}

struct Rule {
    operation: String,
    /// Only calls to this region, if one is named.
    region: Option<String>,
    fault: Fault,
    times: Times,
    seen: usize,
}

impl FaultProxy {
    pub fn start(upstream: &str) -> Self {
        let state = Arc::new(State {
            upstream: upstream.to_owned(),
            ledger: Mutex::default(),
            called: Condvar::new(),
        });
        let for_connections = Arc::clone(&state);
        // An error is a client that went away, as it may.
        let server = Server::start(move |stream| drop(for_connections.serve(stream)));
        Self { server, state }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    /// From now on, some calls of an operation fail; `*` is any operation. Of several faults for one call the first set wins.
    pub fn fault(&self, operation: &str, fault: Fault, times: Times) {
        self.add_rule(operation, None, fault, times);
    }

    /// The same for the calls to one region.
    pub fn fault_in(&self, region: &str, operation: &str, fault: Fault, times: Times) {
        self.add_rule(operation, Some(region.to_owned()), fault, times);
    }

    fn add_rule(&self, operation: &str, region: Option<String>, fault: Fault, times: Times) {
        let rule = Rule { operation: operation.to_owned(), region, fault, times, seen: 0 };
        self.state.ledger.lock().unwrap().rules.push(rule);
    }

    /// From now on, someone else does this just before AWS gets a call of an operation.
    pub fn before(&self, operation: &str, action: impl Fn() + Send + Sync + 'static) {
        let intervention = Intervention { operation: operation.to_owned(), action: Arc::new(action) };
        self.state.ledger.lock().unwrap().interventions.push(intervention);
    }

    /// From now on nothing fails, and nothing is done before a call.
    pub fn heal(&self) {
        let mut ledger = self.state.ledger.lock().unwrap();
        ledger.rules.clear();
        ledger.interventions.clear();
        ledger.healings += 1;
    }

    /// Every call, in the order of arrival.
    pub fn calls(&self) -> Vec<Call> {
        self.state.ledger.lock().unwrap().calls.clone()
    }

    /// How often an operation was called, whatever came of it; `*` is any operation.
    pub fn count(&self, operation: &str) -> usize {
        self.state.ledger.lock().unwrap().count(operation)
    }

    /// The operations called, each once, in the order of first use.
    pub fn operations(&self) -> Vec<String> {
        let mut operations: Vec<String> = Vec::new();
        for call in self.calls() {
            if !operations.contains(&call.operation) {
                operations.push(call.operation);
            }
        }
        operations
    }

    /// How many answers were kept back, each after AWS had done what was asked.
    pub fn kept_back(&self) -> usize {
        self.state.ledger.lock().unwrap().kept_back
    }

    /// The most calls that waited for their answers at the same time.
    pub fn most_in_flight(&self) -> usize {
        self.state.ledger.lock().unwrap().most_in_flight
    }

    /// Forgets the calls, and no fault.
    pub fn clear(&self) {
        let mut ledger = self.state.ledger.lock().unwrap();
        ledger.calls.clear();
        ledger.kept_back = 0;
        ledger.most_in_flight = 0;
    }

    /// Returns as soon as the operation has been called that often.
    #[track_caller]
    pub fn wait_for(&self, operation: &str, count: usize) {
        let limit = Duration::from_secs(180);
        let ledger = self.state.ledger.lock().unwrap();
        let waiting = |ledger: &mut Ledger| ledger.count(operation) < count;
        let (ledger, result) = self.state.called.wait_timeout_while(ledger, limit, waiting).unwrap();
        drop(ledger);
        assert!(!result.timed_out(), "{operation} was not called {count} times, but {:?}", self.operations());
    }
}

impl Ledger {
    fn count(&self, operation: &str) -> usize {
        self.calls.iter().filter(|call| operation == "*" || call.operation == operation).count()
    }

    fn begin(&mut self) {
        self.in_flight += 1;
        self.most_in_flight = self.most_in_flight.max(self.in_flight);
    }

    /// The fault of a call that is there now. All rules count it.
    fn fault_of(&mut self, operation: &str, region: Option<&str>) -> Option<Fault> {
        let mut fault = None;
        let applies_to = |rule: &&mut Rule| {
            (rule.operation == "*" || rule.operation == operation)
                && (rule.region.is_none() || rule.region.as_deref() == region)
        };
        for rule in self.rules.iter_mut().filter(applies_to) {
            rule.seen += 1;
            let applies = match rule.times {
                Times::First(count) => rule.seen <= count,
                Times::Nth(number) => rule.seen == number,
                Times::From(number, count) => (number..number + count).contains(&rule.seen),
                Times::Always => true,
            };
            fault = fault.or(applies.then_some(rule.fault));
        }
        fault
    }
}

impl State {
    /// Answers one request after the other until either side ends the connection.
    fn serve(&self, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        while let Some(mut request) = Message::read_head(&mut reader)? {
            if request.has("expect", "100-continue") {
                (&*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
            }
            request.read_request_body(&mut reader)?;
            let is_last = request.has("connection", "close");
            self.ledger.lock().unwrap().begin();
            let answered = self.answer(request, stream);
            self.ledger.lock().unwrap().in_flight -= 1;
            let goes_on = answered?;
            if is_last || !goes_on {
                break;
            }
        }
        Ok(())
    }

    fn arrived(&self, request: &Message) -> Option<Fault> {
        let operation = protocols::operation(request);
        let mut ledger = self.ledger.lock().unwrap();
        let fault = ledger.fault_of(&operation, protocols::region(request).as_deref());
        let outcome = if fault.is_some() { CallOutcome::Faulted } else { CallOutcome::Passed };
        ledger.calls.push(Call {
            operation,
            at: Instant::now(),
            target: protocols::target(request),
            bucket_owner: request.header("x-amz-expected-bucket-owner").map(str::to_owned),
            outcome,
        });
        self.called.notify_all();
        fault
    }

    /// Whether the connection continues after this.
    fn answer(&self, request: Message, stream: &TcpStream) -> io::Result<bool> {
        let fault = self.arrived(&request);
        self.intervene(&protocols::operation(&request));
        let refusal = match fault {
            None => {
                self.forward(request).write(stream)?;
                return Ok(true);
            }
            Some(Fault::OldLink) => {
                self.forward(with_old_link(request)).write(stream)?;
                return Ok(true);
            }
            Some(Fault::CutBeforeForwarding) => return Ok(false),
            Some(Fault::ResetBeforeForwarding) => {
                // Nothing is left to be sent, so that the end of the connection is a reset.
                SockRef::from(stream).set_linger(Some(Duration::ZERO))?;
                return Ok(false);
            }
            Some(Fault::CutAfterForwarding) => {
                self.forward(request);
                return Ok(false);
            }
            Some(Fault::SilentAfterForwarding) => {
                self.forward(request);
                self.ledger.lock().unwrap().kept_back += 1;
                stay_silent(stream, LONGEST_SILENCE, || false)?;
                return Ok(false);
            }
            Some(Fault::Hang(duration)) => {
                let healings = self.healings();
                stay_silent(stream, duration, || self.healings() > healings)?;
                return Ok(false);
            }
            Some(Fault::SlowBody(duration)) => {
                dribble(&self.forward(request), duration, stream)?;
                return Ok(true);
            }
            Some(Fault::TruncatedBody) => {
                truncate(self.forward(request)).write(stream)?;
                return Ok(false);
            }
            Some(Fault::Throttled) => Refusal::Throttled,
            Some(Fault::ServerError) => Refusal::ServerError,
            Some(Fault::InternalError) => Refusal::InternalError,
            Some(Fault::ExpiredToken) => Refusal::ExpiredToken,
            Some(Fault::AccessDenied) => Refusal::AccessDenied,
            Some(Fault::Skewed) => Refusal::Skewed,
        };
        protocols::refuse(&request, refusal).write(stream)?;
        Ok(true)
    }

    fn intervene(&self, operation: &str) {
        let interventions = self.ledger.lock().unwrap().interventions.clone();
        let wanted = interventions.iter().filter(|intervention| intervention.operation == operation);
        wanted.for_each(|intervention| (intervention.action)());
    }

    fn healings(&self) -> usize {
        self.ledger.lock().unwrap().healings
    }

    fn forward(&self, mut request: Message) -> Message {
        request.remove_header("expect");
        match ask(&self.upstream, request) {
            Ok(mut answer) => {
                answer.remove_header("connection");
                answer
            }
            Err(error) => Message::answer(502, &[], format!("{}: {error}", self.upstream).as_bytes()),
        }
    }
}

/// The same link, signed years ago.
fn with_old_link(mut request: Message) -> Message {
    let name = "X-Amz-Date=";
    if let Some((before, after)) = request.start.clone().split_once(name) {
        let rest = after.trim_start_matches(|c: char| c.is_ascii_alphanumeric());
        request.start = format!("{before}{name}20200101T000000Z{rest}");
    }
    request
}

/// Not a sleep: it also ends when the client gives up.
fn stay_silent(mut stream: &TcpStream, duration: Duration, is_over: impl Fn() -> bool) -> io::Result<()> {
    let end = Instant::now() + duration;
    stream.set_read_timeout(Some(Duration::from_millis(50)))?;
    while Instant::now() < end && !is_over() {
        match stream.read(&mut [0]) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            _ => break,
        }
    }
    Ok(())
}

fn dribble(answer: &Message, duration: Duration, mut stream: &TcpStream) -> io::Result<()> {
    stream.write_all(&answer.head())?;
    let pieces = answer.wire.chunks(answer.wire.len().div_ceil(20).max(1));
    let pause = duration / u32::try_from(pieces.len().max(1)).unwrap();
    for piece in pieces {
        thread::sleep(pause);
        stream.write_all(piece)?;
    }
    Ok(())
}

/// Announces more than it holds.
fn truncate(mut answer: Message) -> Message {
    answer.remove_header("transfer-encoding");
    answer.set_header("Content-Length", &answer.body.len().max(1).to_string());
    answer.wire = answer.body[..answer.body.len() / 2].to_vec();
    answer
}
