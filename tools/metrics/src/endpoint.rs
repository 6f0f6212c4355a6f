//! Answers `GET /metrics` and `GET /health`, one connection after the other.
//!
//! That is all of HTTP that a scrape needs, so no server of a crate stands between: each has
//! threads, queues and limits of its own. A client that stops has a few seconds, and then the next
//! one is answered.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::{Duration, Instant};

use echoless::SpecError;

use crate::{Fields, text};

/// How long a client may take for its request.
const PATIENCE: Duration = Duration::from_secs(2);

/// The most bytes of a request.
const LONGEST_REQUEST: usize = 8 << 10;

/// The pause after a connection that failed before it began, as without a free descriptor.
const PAUSE: Duration = Duration::from_millis(100);

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
        let mut address = self.address;
        match address.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => address.set_ip(Ipv4Addr::LOCALHOST.into()),
            IpAddr::V6(ip) if ip.is_unspecified() => address.set_ip(Ipv6Addr::LOCALHOST.into()),
            _ => {}
        }
        let is_over = Arc::new(AtomicBool::new(false));
        let served = Served {
            address,
            is_over: Arc::clone(&is_over),
        };
        thread::Builder::new()
            .name("echoless-metrics".into())
            .spawn_scoped(scope, move || {
                for client in self.listener.incoming() {
                    // Relaxed: the connection that ends the wait comes behind it.
                    if is_over.load(Ordering::Relaxed) {
                        return;
                    }
                    match client {
                        // A client that goes away has no use for the error.
                        Ok(client) => drop(answer(client, &mut fields)),
                        Err(_) => thread::sleep(PAUSE),
                    }
                }
            })?;
        Ok(served)
    }
}

/// Ends the answers when it is dropped.
#[derive(Debug)]
pub struct Served {
    address: SocketAddr,
    is_over: Arc<AtomicBool>,
}

impl Drop for Served {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        // Ends the wait for a client.
        let _ = TcpStream::connect_timeout(&self.address, PATIENCE);
    }
}

fn answer(mut client: TcpStream, fields: &mut impl FnMut() -> Fields) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let request = read_request(&mut client)?;
    let mut words = request.split(' ');
    let (status, kind, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", OPEN_METRICS, text(&fields())),
        (Some("GET"), Some("/health")) => ("200 OK", PLAIN, "ok\n".to_owned()),
        (Some("GET"), Some(_)) => {
            let body = "expected /metrics or /health\n".to_owned();
            ("404 Not Found", PLAIN, body)
        }
        (_, _) => ("405 Method Not Allowed", PLAIN, "expected GET\n".to_owned()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    client.write_all((head + &body).as_bytes())
}

const PLAIN: &str = "text/plain; charset=utf-8";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Reads a request to the empty line at its end.
fn read_request(client: &mut TcpStream) -> io::Result<String> {
    let until = Instant::now() + PATIENCE;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while !request.ends_with(b"\r\n\r\n") && request.len() < LONGEST_REQUEST {
        let left = until.saturating_duration_since(Instant::now());
        // No time is an error, of which the next line would make endless patience.
        client.set_read_timeout(Some(left.max(Duration::from_millis(1))))?;
        let read = client.read(&mut part)?;
        if read == 0 || left.is_zero() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        request.extend_from_slice(&part[..read]);
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
            for (request, status, body) in [
                ("GET /health HTTP/1.1\r\n\r\n", "200", "ok\n"),
                (
                    "GET / HTTP/1.1\r\n\r\n",
                    "404",
                    "expected /metrics or /health\n",
                ),
                ("POST /metrics HTTP/1.1\r\n\r\n", "405", "expected GET\n"),
                ("\0\r\n\r\n", "405", "expected GET\n"),
            ] {
                let answer = ask(address, request);
                assert!(
                    answer.starts_with(&format!("HTTP/1.1 {status} ")),
                    "{answer}"
                );
                assert!(answer.ends_with(&format!("\r\n\r\n{body}")), "{answer}");
            }
            drop(served);
        });
        assert_eq!(scrapes, 2);
        assert!(TcpStream::connect(address).is_err());
    }
}
