//! The service of a connection: an answer for each line, however the bytes arrive, for many
//! connections at once.

use std::collections::HashSet;
use std::future::pending;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use echoless::{Engine, FingerprintSpec, KeyHasher, SharedSpec, Verdicts};
use echoless_tokio::{AsyncFilter, LineError, MAX_LINE, serve_lines};
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt, BufStream, duplex, join};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

fn hasher() -> KeyHasher {
    KeyHasher::seeded(0)
}

/// The answers to an input that arrives in parts of `chunk` bytes, through a pipe of that size.
async fn answers(input: &[u8], chunk: usize, filter: impl AsyncFilter) -> (u64, Vec<u8>) {
    let (client, server) = duplex(chunk);
    let (mut receive, mut send) = tokio::io::split(client);
    let hasher = hasher();
    let mut answers = Vec::new();
    let (served, sent, received) = tokio::join!(
        async {
            let mut server = server;
            let served = serve_lines(&mut server, filter, &hasher, pending()).await;
            server.shutdown().await.unwrap();
            served
        },
        async {
            send.write_all(input).await?;
            send.shutdown().await
        },
        receive.read_to_end(&mut answers),
    );
    sent.unwrap();
    received.unwrap();
    (served.unwrap(), answers)
}

/// What a service must answer, from a set.
fn expected(input: &str, seen: &mut HashSet<String>) -> (u64, Vec<u8>) {
    let lines: Vec<_> = match input.strip_suffix('\n') {
        _ if input.is_empty() => Vec::new(),
        Some(lines) => lines.split('\n').collect(),
        None => input.split('\n').collect(),
    };
    let answers = lines.iter().map(|line| match seen.insert((*line).into()) {
        true => "fresh\n",
        false => "duplicate\n",
    });
    (lines.len() as u64, answers.collect::<String>().into_bytes())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn every_line_is_answered_however_it_arrives(input in "([ab]{0,3}\n?){0,40}", chunk in 1usize..20) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let shared = SharedSpec::new(1 << 16).build().unwrap();
        let found = runtime.block_on(answers(input.as_bytes(), chunk, &shared));
        prop_assert_eq!(&found, &expected(&input, &mut HashSet::new()));
        let filter = FingerprintSpec::new(1 << 16).build_partitions(2).unwrap();
        let (_engine, mut ports) = Engine::builder(filter).ring_depth(1).build().unwrap();
        let found = runtime.block_on(answers(input.as_bytes(), chunk, ports.remove(0)));
        prop_assert_eq!(&found, &expected(&input, &mut HashSet::new()));
    }
}

/// Each line is sent on two of 1,000 connections; in all, one answer in two is `fresh`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_connections_share_one_filter() {
    const CONNECTIONS: u64 = 1000;
    const LINES: u64 = 50;
    let filter = FingerprintSpec::new(1 << 22).build_partitions(2).unwrap();
    let (engine, _) = Engine::builder(filter).ring_depth(4).build().unwrap();
    let mut clients = JoinSet::new();
    for client in 0..CONNECTIONS {
        let port = engine.attacher().attach().unwrap();
        clients.spawn(async move {
            let lines: Vec<_> = (0..LINES)
                .map(|line| format!("call {}\n", client / 2 * LINES + line))
                .collect();
            let (count, answers) = answers(lines.concat().as_bytes(), 256, port).await;
            assert_eq!(count, LINES);
            let answers = String::from_utf8(answers).unwrap();
            answers.lines().filter(|line| *line == "fresh").count() as u64
        });
    }
    let fresh: u64 = clients.join_all().await.into_iter().sum();
    assert_eq!(fresh, CONNECTIONS / 2 * LINES);
    assert_eq!(engine.counts().judged, CONNECTIONS * LINES);
    engine.shutdown().unwrap();
}

#[tokio::test]
async fn a_stopped_service_answers_what_it_has_read() {
    let filter = Arc::new(SharedSpec::new(1 << 16).build().unwrap());
    let (mut client, server) = duplex(1 << 10);
    let (stop, stopped) = oneshot::channel::<()>();
    let service = tokio::spawn(async move {
        let stop = async {
            stopped.await.ok();
        };
        serve_lines(server, filter, &hasher(), stop).await.unwrap()
    });
    client.write_all(b"a\na\nb").await.unwrap();
    let mut answers = [0; 16];
    client.read_exact(&mut answers).await.unwrap();
    assert_eq!(&answers, b"fresh\nduplicate\n");
    stop.send(()).unwrap();
    // The part of a line has no answer.
    assert_eq!(service.await.unwrap(), 2);
    assert_eq!(client.read(&mut answers).await.unwrap(), 0);
}

#[tokio::test]
async fn a_client_that_still_sends_gets_all_answers_of_a_stopped_service() {
    let filter = SharedSpec::new(1 << 16).build().unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).await;
    let (mut receive, mut send) = client.unwrap().into_split();
    let (stop, stopped) = oneshot::channel::<()>();
    let service = async {
        let (mut connection, _) = listener.accept().await.unwrap();
        let stop = async {
            stopped.await.ok();
        };
        let hasher = hasher();
        let answered = serve_lines(&mut connection, &filter, &hasher, stop).await;
        connection.shutdown().await.unwrap();
        // Without this, the unread lines would reset the connection.
        tokio::io::copy(&mut connection, &mut tokio::io::sink())
            .await
            .unwrap();
        answered.unwrap()
    };
    // Its end closes the connection.
    let client = async move {
        let sender = async { while send.write_all(&b"call 17\n".repeat(1000)).await.is_ok() {} };
        let receiver = async {
            let mut answers = vec![0; 10_000];
            receive.read_exact(&mut answers).await.unwrap();
            stop.send(()).unwrap();
            // Many answers are on their way meanwhile.
            tokio::time::sleep(Duration::from_millis(20)).await;
            receive.read_to_end(&mut answers).await.unwrap();
            answers
        };
        tokio::select! {
            answers = receiver => answers,
            () = sender => panic!("the connection was reset"),
        }
    };
    let (answered, answers) = tokio::join!(service, client);
    let lines = answers.iter().filter(|byte| **byte == b'\n').count();
    assert_eq!(lines as u64, answered);
}

#[tokio::test]
async fn a_line_that_is_too_long_ends_the_connection() {
    let filter = SharedSpec::new(1 << 16).build().unwrap();
    let mut output = Vec::new();
    for (length, accepted) in [(MAX_LINE, true), (MAX_LINE + 1, false)] {
        for end in ["", "\n"] {
            let input = ["x".repeat(length).as_str(), end].concat();
            let connection = join(input.as_bytes(), &mut output);
            let served = serve_lines(connection, &filter, &hasher(), pending()).await;
            match served {
                Ok(count) => assert!(accepted && count == 1, "{length}"),
                Err(error) => {
                    assert!(!accepted && matches!(error, LineError::TooLong), "{error}");
                    assert_eq!(error.to_string(), "a line is longer than 65536 bytes");
                }
            }
        }
    }
}

#[tokio::test]
async fn the_lines_before_one_that_is_too_long_are_answered() {
    let filter = SharedSpec::new(1 << 16).build().unwrap();
    let input = format!("a\na\n{}\nb\n", "x".repeat(MAX_LINE + 1));
    let mut output = Vec::new();
    let connection = join(input.as_bytes(), &mut output);
    let served = serve_lines(connection, &filter, &hasher(), pending()).await;
    assert!(matches!(served, Err(LineError::TooLong)), "{served:?}");
    assert_eq!(output, b"fresh\nduplicate\n");
}

/// A client that waits for an answer before its next line gets it, however the connection buffers.
#[tokio::test]
async fn answers_are_flushed() {
    let filter = SharedSpec::new(1 << 16).build().unwrap();
    let (mut client, server) = duplex(1 << 10);
    let hasher = hasher();
    let service = serve_lines(BufStream::new(server), &filter, &hasher, pending());
    let client = async move {
        for (line, answer) in [
            ("a\n", "fresh\n"),
            ("a\n", "duplicate\n"),
            ("a\r\n", "fresh\n"),
        ] {
            client.write_all(line.as_bytes()).await.unwrap();
            let mut found = vec![0; answer.len()];
            client.read_exact(&mut found).await.unwrap();
            assert_eq!(found, answer.as_bytes());
        }
    };
    let (served, ()) = tokio::join!(service, client);
    assert_eq!(served.unwrap(), 3);
}

#[tokio::test]
async fn a_lost_engine_ends_the_service() {
    let filter = FingerprintSpec::new(1 << 16).build_partitions(1).unwrap();
    let (engine, mut ports) = Engine::builder(filter).build().unwrap();
    engine.shutdown().unwrap();
    let mut output = Vec::new();
    let connection = join(&b"a\n"[..], &mut output);
    let served = serve_lines(connection, ports.remove(0), &hasher(), pending()).await;
    assert!(matches!(served, Err(LineError::Exchange(_))), "{served:?}");
    assert_eq!(output, b"");
}

/// A dropped future leaves a batch in flight; the next call returns the verdicts of its own keys.
#[tokio::test]
async fn a_port_forgets_the_batch_of_a_dropped_future() {
    let filter = FingerprintSpec::new(1 << 16).build_partitions(2).unwrap();
    let (_engine, mut ports) = Engine::builder(filter).build().unwrap();
    let port = &mut ports[0];
    let keys: Vec<_> = (0..1000).map(|key| hasher().hash_u64(key)).collect();
    let mut verdicts = Verdicts::new();
    let mut forgotten = Verdicts::new();
    let mut observe = Box::pin(AsyncFilter::observe_async(port, &keys, &mut forgotten));
    let _ = observe
        .as_mut()
        .poll(&mut Context::from_waker(Waker::noop()));
    drop(observe);
    port.observe_async(&keys[..10], &mut verdicts)
        .await
        .unwrap();
    assert_eq!((verdicts.len(), verdicts.count_duplicates()), (10, 10));
    assert_eq!(port.in_flight(), 0);
}
