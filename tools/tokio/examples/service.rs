//! A duplicate filter for other programs: keys in, one in a line, and `fresh` or `duplicate` out,
//! over TCP. The connections share one filter, whose calls take less time than handing lines to a
//! worker thread.
//!
//! ```sh
//! cargo run --release -p echoless-tokio --example service -- 127.0.0.1:7878
//! printf 'call 17\ncall 18\ncall 17\n' | nc -q 1 127.0.0.1 7878
//! ```
//!
//! Ctrl-C ends it: no more connections are accepted, the lines that were read are answered, and two
//! counts are printed.

use std::collections::hash_map::RandomState;
use std::error::Error;
use std::hash::{BuildHasher, Hasher};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use echoless::{KeyHasher, SharedFilter, SharedSpec};
use echoless_tokio::serve_lines;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The memory of the filter: of duplicates as old as 3.6 million distinct keys, 1 in 1000 is
/// missed, and fewer of the younger ones. Of fresh keys, 6 in 100,000 are reported as duplicates.
const MEMORY: u64 = 64 << 20;

/// How long connections may take to end.
const GRACE: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1);
    let address: SocketAddr = address.as_deref().unwrap_or("127.0.0.1:7878").parse()?;

    let filter = Arc::new(SharedSpec::new(MEMORY).build()?);
    // Clients choose the keys, so a secret key keeps them from crowding into one line.
    let hasher = KeyHasher::keyed(secret_key());

    let listener = TcpListener::bind(address).await?;
    println!("listening on {}", listener.local_addr()?);
    let (stop, stopped) = watch::channel(false);
    let mut connections = JoinSet::new();
    // One future for all of the loop: it keeps a signal that arrives between two waits.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    loop {
        let (connection, client) = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Such as too many open files: some connections may end soon.
                    eprintln!("{error}");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            signal = &mut interrupt => break signal?,
        };
        let (filter, hasher, mut stopped) = (Arc::clone(&filter), hasher.clone(), stopped.clone());
        connections.spawn(async move {
            let stop = async {
                stopped.wait_for(|stopped| *stopped).await.ok();
            };
            // A connection that fails is no failure of the service.
            if let Err(error) = serve(connection, filter, &hasher, stop).await {
                eprintln!("{client}: {error}");
            }
        });
        while connections.try_join_next().is_some() {}
    }

    stop.send_replace(true);
    // A client that does not read its answers must not keep the service.
    let end = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(GRACE, end).await.is_err() {
        connections.shutdown().await;
    }
    let tally = filter.report().tally;
    if let (Some(fresh), Some(forgotten)) = (tally.fresh, tally.evictions) {
        println!("{fresh} keys were fresh, {forgotten} are forgotten");
    }
    Ok(())
}

/// Answers the lines of a connection, and waits until the client has closed it: what a client
/// still sends is read and dropped, as closing a socket with unread bytes would reset it, and the
/// client would lose answers that it has not read yet.
async fn serve(
    mut connection: TcpStream,
    filter: Arc<SharedFilter>,
    hasher: &KeyHasher,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    connection.set_nodelay(true)?;
    let served = serve_lines(&mut connection, filter, hasher, stop).await;
    connection.shutdown().await?;
    tokio::io::copy(&mut connection, &mut tokio::io::sink()).await?;
    served?;
    Ok(())
}

/// A key that differs in each run, from the random keys of the standard library's hash maps.
fn secret_key() -> [u8; 16] {
    let random = || u128::from(RandomState::new().build_hasher().finish());
    (random() << 64 | random()).to_le_bytes()
}
