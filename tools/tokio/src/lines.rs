//! A service for one connection: lines in, a verdict for each line out.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::task::Poll;

use echoless::{ExchangeError, KeyHasher, Verdict, Verdicts};
use memchr::{memchr_iter, memrchr};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::async_filter::AsyncFilter;

/// The longest line in bytes, without its end.
pub const MAX_LINE: usize = 64 << 10;

/// Why a connection ended early.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum LineError {
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The engine cannot go on.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// A line is too long.
    #[error("a line is longer than {MAX_LINE} bytes")]
    TooLong,
}

/// Answers each line of a connection with a line, `fresh` or `duplicate`, in their order, until the
/// client closes its side, or `stop` is ready. Returns the number of answers.
///
/// A line ends with a line feed; the last one may lack it. All other bytes belong to the key, a
/// carriage return too, and an empty line is a key. The lines that arrive while a batch is observed
/// are the next batch, so batches grow with the load.
///
/// Answers are flushed after each batch. While a client does not read its answers, no more of its
/// lines are read, and `stop` has no effect: the caller bounds that time.
///
/// The connection is not shut down. Pass `&mut connection` to go on with it: closing a socket that
/// has unread bytes resets it, and the client loses the answers that it has not read yet. So shut
/// the writing half down, and read until the client closes its side, as the example `service` does.
///
/// # Errors
/// [`LineError`]. Lines whose answers were not written may be recorded.
///
/// # Examples
/// ```
/// use echoless::{KeyHasher, SharedSpec};
/// use echoless_tokio::serve_lines;
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let filter = SharedSpec::new(1 << 20).build()?;
/// let mut answers = Vec::new();
/// let connection = tokio::io::join(&b"call 17\ncall 18\ncall 17\n"[..], &mut answers);
/// let never = std::future::pending();
/// let count = serve_lines(connection, &filter, &KeyHasher::seeded(0), never).await?;
/// assert_eq!(count, 3);
/// assert_eq!(answers, b"fresh\nfresh\nduplicate\n");
/// # Ok(())
/// # }
/// ```
pub async fn serve_lines(
    connection: impl AsyncRead + AsyncWrite + Unpin,
    mut filter: impl AsyncFilter,
    hasher: &KeyHasher,
    stop: impl Future<Output = ()>,
) -> Result<u64, LineError> {
    let mut connection = connection;
    let mut stop = pin!(stop);
    let (mut input, mut keys) = (Vec::with_capacity(16 << 10), Vec::new());
    let (mut verdicts, mut output) = (Verdicts::new(), Vec::new());
    let mut answered = 0;
    loop {
        input.reserve(4 << 10);
        let known = input.len();
        let Some(count) = read_unless(&mut connection, &mut input, stop.as_mut()).await? else {
            return Ok(answered); // what is left is a part of a line
        };
        let ended = count == 0;
        let lines = match memrchr(b'\n', &input[known..]) {
            _ if ended => input.len(),
            Some(last) => known + last + 1,
            None => 0,
        };
        let mut too_long = input.len() - lines > MAX_LINE;
        keys.clear();
        for line in lines_of(&input[..lines]) {
            if line.len() > MAX_LINE {
                too_long = true;
                break;
            }
            keys.push(hasher.hash(line));
        }
        if !keys.is_empty() {
            filter.observe_async(&keys, &mut verdicts).await?;
            output.clear();
            for verdict in &verdicts {
                let answer: &[u8] = match verdict {
                    Verdict::Fresh => b"fresh\n",
                    Verdict::Duplicate => b"duplicate\n",
                };
                output.extend_from_slice(answer);
            }
            connection.write_all(&output).await?;
            connection.flush().await?;
            answered += keys.len() as u64;
        }
        if too_long {
            return Err(LineError::TooLong);
        }
        if ended {
            return Ok(answered);
        }
        input.drain(..lines);
    }
}

/// Appends what arrives to `input` and returns the number of bytes, 0 at the end of the input;
/// `None` if `stop` is ready.
async fn read_unless(
    connection: &mut (impl AsyncRead + Unpin),
    input: &mut Vec<u8>,
    mut stop: Pin<&mut impl Future<Output = ()>>,
) -> io::Result<Option<usize>> {
    let mut read = pin!(connection.read_buf(input));
    poll_fn(|context| match stop.as_mut().poll(context) {
        Poll::Ready(()) => Poll::Ready(Ok(None)),
        Poll::Pending => read.as_mut().poll(context).map_ok(Some),
    })
    .await
}

/// The lines, without their ends. The last one may lack its end.
fn lines_of(input: &[u8]) -> impl Iterator<Item = &[u8]> {
    let rest = match input.last() {
        None | Some(b'\n') => None,
        Some(_) => Some(input.len()),
    };
    let mut start = 0;
    memchr_iter(b'\n', input).chain(rest).map(move |end| {
        let line = &input[start..end];
        start = end + 1;
        line
    })
}
