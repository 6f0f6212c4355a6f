//! Answers `GET /metrics` and `GET /health`, one connection after the other.
//!
//! That is all of HTTP that a scrape needs, so no server of a crate stands between: each has
//! threads, queues and limits of its own. A client that says nothing has a moment, and one that stops
//! in the middle two seconds; then the next one is answered.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, Thread};
use std::time::{Duration, Instant};

use echoless::SpecError;

use crate::{Fields, text};

/// How long a client may take for its request, once it has begun with it.
const PATIENCE: Duration = Duration::from_secs(2);

/// How long it may take to begin.
const FIRST_PATIENCE: Duration = Duration::from_millis(250);

/// Between two looks for a client, and for the end while one is read.
const BETWEEN_LOOKS: Duration = Duration::from_millis(50);

/// The most bytes of a request.
const LONGEST_REQUEST: usize = 8 << 10;

/// Parses `ADDRESS:PORT`, or a port of 127.0.0.1.
///
/// # Errors
/// [`SpecError`] if the text is neither.
///
/// # Examples
/// ```
/// use echoless_metrics::parse_address;
/// assert_eq!(parse_address("--metrics", "9464")?, "127.0.0.1:9464".parse().unwrap());
/// assert_eq!(parse_address("--metrics", "[::]:80")?, "[::]:80".parse().unwrap());
/// assert!(parse_address("--metrics", "localhost").is_err());
/// # Ok::<(), echoless::SpecError>(())
/// ```
pub fn parse_address(option: &'static str, text: &str) -> Result<SocketAddr, SpecError> {
    let port = || text.parse().map(|port| (Ipv4Addr::LOCALHOST, port).into());
    text.parse().or_else(|_| port()).map_err(|_| {
        let allowed = "ADDRESS:PORT, such as 127.0.0.1:9464, or a port of 127.0.0.1";
        SpecError::new(option, text, allowed)
    })
}

/// An address at which metrics can be asked for.
#[derive(Debug)]
pub struct Endpoint {
    listener: TcpListener,
    address: SocketAddr,
}

impl Endpoint {
    /// Takes the address. Nothing is answered yet.
    ///
    /// # Errors
    /// That of the system, such as an address in use.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        // Its end must not depend on a connection: the address may be gone by then.
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// The address, with the port that the system has chosen for port 0.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers on a thread until what is returned is dropped. `fields` are the statistics so far.
    ///
    /// # Errors
    /// If the thread cannot be started.
    pub fn serve<'scope>(
        self,
        scope: &'scope Scope<'scope, '_>,
        mut fields: impl FnMut() -> Fields + Send + 'scope,
    ) -> io::Result<Served> {
        let over = Arc::new(AtomicBool::new(false));
        let is_over = Arc::clone(&over);
        let served = thread::Builder::new()
            .name("echoless-metrics".into())
            .spawn_scoped(scope, move || {
                // Relaxed: the flag publishes nothing else.
                let is_over = || is_over.load(Ordering::Relaxed);
                while !is_over() {
                    match self.listener.accept() {
                        // A client that goes away has no use for the error.
                        Ok((client, _)) => drop(answer(client, &is_over, &mut fields)),
                        // No client, or no free descriptor for it.
                        Err(_) => thread::park_timeout(BETWEEN_LOOKS),
                    }
                }
            })?;
        Ok(Served {
            thread: served.thread().clone(),
            is_over: over,
        })
    }
}

/// Ends the answers when it is dropped.
#[derive(Debug)]
pub struct Served {
    thread: Thread,
    is_over: Arc<AtomicBool>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        self.thread.unpark();
    }
}

fn answer(
    mut client: TcpStream,
    is_over: &impl Fn() -> bool,
    fields: &mut impl FnMut() -> Fields,
) -> io::Result<()> {
    // Some systems pass that of the listener on.
    client.set_nonblocking(false)?;
    client.set_write_timeout(Some(PATIENCE))?;
    let request = read_request(&mut client, is_over)?;
    let mut words = request.split(' ');
    let (method, target) = (words.next(), words.next().unwrap_or_default());
    let path = target.split('?').next();
    let (status, kind, body) = match (method, path) {
        _ if request.len() >= LONGEST_REQUEST => {
            let body = format!("expected less than {LONGEST_REQUEST} bytes\n");
            ("431 Request Header Fields Too Large", PLAIN, body)
        }
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", OPEN_METRICS, text(&fields())),
        (Some("GET" | "HEAD"), Some("/health")) => ("200 OK", PLAIN, "ok\n".to_owned()),
        (Some("GET" | "HEAD"), Some(_)) => {
            let body = "expected /metrics or /health\n".to_owned();
            ("404 Not Found", PLAIN, body)
        }
        (_, _) => ("405 Method Not Allowed", PLAIN, "expected GET\n".to_owned()),
    };
    let length = body.len();
    let mut answer = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    if method != Some("HEAD") {
        answer += &body;
    }
    client.write_all(answer.as_bytes())
}

const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Reads a request to the empty line behind its head.
fn read_request(client: &mut TcpStream, is_over: &impl Fn() -> bool) -> io::Result<String> {
    let began = Instant::now();
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    client.set_read_timeout(Some(BETWEEN_LOOKS))?;
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        let patience = match request.is_empty() {
            true => FIRST_PATIENCE,
            false => PATIENCE,
        };
        if is_over() || began.elapsed() > patience {
            return Err(ErrorKind::TimedOut.into());
        }
        match client.read(&mut part) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(read) => request.extend_from_slice(&part[..read]),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(String::from_utf8_lossy(&request).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &str) -> String {
        let mut client = TcpStream::connect(address).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        answer
    }

    #[test]
    fn requests_are_answered_until_the_end() {
        let endpoint = Endpoint::bind(parse_address("--metrics", "0").unwrap()).unwrap();
        let address = endpoint.address();
        assert!(address.ip().is_loopback());
        let mut scrapes = 0;
        thread::scope(|scope| {
            let fields = || {
                scrapes += 1;
                Fields::from_iter([("records".to_owned(), scrapes.into())])
            };
            let served = endpoint.serve(scope, fields).unwrap();
            for number in 1..3 {
                let answer = ask(address, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
                let (head, body) = answer.split_once("\r\n\r\n").unwrap();
                assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
                assert!(head.contains(&format!("\r\nContent-Length: {}\r\n", body.len())));
                assert!(body.contains(&format!("\necholess_records_total {number}\n")));
            }
            // One that goes away is no reason to end.
            drop(TcpStream::connect(address).unwrap());
            let pages = "expected /metrics or /health\n";
            for (request, status, body) in [
                ("GET /health HTTP/1.1\r\n\r\n", "200", "ok\n"),
                ("GET / HTTP/1.1\r\n\r\n", "404", pages),
                ("GET /health?x=y HTTP/1.1\r\n\r\n", "200", "ok\n"),
                ("HEAD /health HTTP/1.1\r\n\r\n", "200", ""),
                ("POST /metrics HTTP/1.1\r\n\r\na=b", "405", "expected GET\n"),
                ("\0\r\n\r\n", "405", "expected GET\n"),
            ] {
                let answer = ask(address, request);
                assert!(
                    answer.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{answer}"
                );
                assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
            }
            let long = format!("GET /health HTTP/1.1\r\nA: {}", "a".repeat(LONGEST_REQUEST));
            assert!(ask(address, &long[..LONGEST_REQUEST]).starts_with("HTTP/1.1 431 "));
            // Clients that say nothing, or not all, delay neither others for long nor the end.
            let _silent = [(); 3].map(|()| TcpStream::connect(address).unwrap());
            assert!(ask(address, "GET /health HTTP/1.1\r\n\r\n").ends_with("ok\n"));
            let mut slow = TcpStream::connect(address).unwrap();
            slow.write_all(b"GET /").unwrap();
            drop(served);
        });
        assert_eq!(scrapes, 2);
    }
}
