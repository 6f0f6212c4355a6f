//! Rings and doorbells under real threads, with more threads than cores and tiny rings, against a
//! sequential oracle.

#![cfg(not(loom))]

use std::thread;

use echoless::transport::{Consumer, Parker, PopError, Producer, Wait, ring};

const MESSAGES: u64 = 2_000;
const KEYS: usize = 64;

/// A message of several cache lines, as large as those of a port.
#[derive(Clone, Copy)]
struct Message {
    len: usize,
    keys: [u64; KEYS],
}

impl Default for Message {
    fn default() -> Self {
        Self {
            len: 0,
            keys: [0; KEYS],
        }
    }
}

/// Message `number` of client `client` to server `server`.
fn keys(client: usize, server: usize, number: u64) -> Vec<u64> {
    let mut state = (client as u64) << 48 ^ (server as u64) << 40 ^ number;
    let len = 1 + (number as usize * 7 + client) % KEYS;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state >> 32
    };
    (0..len).map(|_| next()).collect()
}

/// The answer of a server to one message. It depends on all earlier messages of the client, so
/// order and content matter.
fn answer(state: &mut u64, keys: &[u64]) -> u64 {
    for key in keys {
        *state = (state.rotate_left(5) ^ key).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    *state
}

fn between<T: Default>(
    writer: &Parker,
    reader: &Parker,
    capacity: usize,
) -> (Producer<T>, Consumer<T>) {
    let (mut producer, mut consumer) = ring::bounded(capacity).unwrap();
    producer.set_doorbell(reader.doorbell());
    consumer.set_doorbell(writer.doorbell());
    (producer, consumer)
}

/// Answers all clients until each has closed its ring. Parks until any of them is ready. Returns
/// the number of answers.
fn serve(
    mut parker: Parker,
    wait: Wait,
    mut clients: Vec<(Consumer<Message>, Producer<u64>)>,
) -> u64 {
    let mut states = vec![0; clients.len()];
    let mut open = vec![true; clients.len()];
    let mut served = 0;
    while open.contains(&true) {
        parker.wait_until(wait, || {
            clients
                .iter()
                .zip(&open)
                .any(|((inbox, outbox), open)| *open && inbox.is_ready() && outbox.is_ready())
        });
        for (((inbox, outbox), state), open) in clients.iter_mut().zip(&mut states).zip(&mut open) {
            while *open && outbox.is_ready() {
                let message = match inbox.peek(0) {
                    Ok(message) => message,
                    Err(PopError::Empty) => break,
                    Err(PopError::Closed) => {
                        *open = false;
                        break;
                    }
                };
                let result = answer(state, &message.keys[..message.len]);
                inbox.release(1);
                let pushed = outbox.push_batch([result]);
                pushed.expect("the client pops every answer");
                served += 1;
            }
        }
    }
    served
}

/// Sends every server its messages, and returns the answers of each server in order.
fn request(
    client: usize,
    mut parker: Parker,
    wait: Wait,
    mut servers: Vec<(Producer<Message>, Consumer<u64>)>,
) -> Vec<Vec<u64>> {
    let mut answers = vec![Vec::new(); servers.len()];
    let mut sent = vec![0; servers.len()];
    while answers
        .iter()
        .any(|of_one| (of_one.len() as u64) < MESSAGES)
    {
        parker.wait_until(wait, || {
            servers.iter().zip(&sent).any(|((outbox, inbox), sent)| {
                inbox.is_ready() || (*sent < MESSAGES && outbox.is_ready())
            })
        });
        for (server, (outbox, inbox)) in servers.iter_mut().enumerate() {
            while sent[server] < MESSAGES {
                let Ok(mut message) = outbox.vacant() else {
                    break;
                };
                let keys = keys(client, server, sent[server]);
                message.len = keys.len();
                message.keys[..keys.len()].copy_from_slice(&keys);
                message.publish();
                outbox.notify();
                sent[server] += 1;
            }
            answers[server].extend(inbox.drain());
        }
    }
    answers
}

fn run(clients: usize, servers: usize, capacity: usize, wait: Wait) {
    let client_parkers: Vec<_> = (0..clients).map(|_| Parker::new()).collect();
    let server_parkers: Vec<_> = (0..servers).map(|_| Parker::new()).collect();
    let mut client_ends: Vec<Vec<_>> = (0..clients).map(|_| Vec::new()).collect();
    let mut server_ends: Vec<Vec<_>> = (0..servers).map(|_| Vec::new()).collect();
    for (client_parker, client_ends) in client_parkers.iter().zip(&mut client_ends) {
        for (server_parker, server_ends) in server_parkers.iter().zip(&mut server_ends) {
            let (requests, inbox) = between(client_parker, server_parker, capacity);
            let (outbox, answers) = between(server_parker, client_parker, capacity);
            client_ends.push((requests, answers));
            server_ends.push((inbox, outbox));
        }
    }
    let serving: Vec<_> = server_parkers
        .into_iter()
        .zip(server_ends)
        .map(|(parker, ends)| thread::spawn(move || serve(parker, wait, ends)))
        .collect();
    let requesting: Vec<_> = client_parkers
        .into_iter()
        .zip(client_ends)
        .enumerate()
        .map(|(client, (parker, ends))| thread::spawn(move || request(client, parker, wait, ends)))
        .collect();

    for (client, requesting) in requesting.into_iter().enumerate() {
        for (server, answers) in requesting.join().unwrap().into_iter().enumerate() {
            let mut state = 0;
            let expected: Vec<u64> = (0..MESSAGES)
                .map(|number| answer(&mut state, &keys(client, server, number)))
                .collect();
            assert_eq!(answers, expected, "client {client}, server {server}");
        }
    }
    for serving in serving {
        assert_eq!(serving.join().unwrap(), clients as u64 * MESSAGES);
    }
}

#[test]
fn answers_equal_those_of_one_thread() {
    for (clients, servers) in [(1, 1), (2, 2), (4, 4), (7, 1), (1, 7)] {
        for capacity in [1, 2, 8] {
            for wait in [Wait::Shared, Wait::Dedicated] {
                run(clients, servers, capacity, wait);
            }
        }
    }
}

/// A thread that panics drops its ends, which wakes the threads at the other ends and returns them
/// an error.
#[test]
fn a_panic_at_one_end_is_an_error_at_the_other() {
    let (mut client, mut server) = (Parker::new(), Parker::new());
    let (mut requests, mut inbox) = between::<u64>(&client, &server, 2);
    let (outbox, answers) = between::<u64>(&server, &client, 2);
    let serving = thread::spawn(move || {
        let _outbox = outbox;
        server.wait_until(Wait::Shared, || inbox.is_ready());
        let request = inbox.drain().next();
        assert_ne!(request, Some(13), "this request panics on purpose");
    });
    requests.push_batch([13]).unwrap();
    client.wait_until(Wait::Shared, || answers.is_ready());
    assert_eq!(answers.peek(0).err(), Some(PopError::Closed));
    client.wait_until(Wait::Shared, || requests.is_closed());
    assert!(serving.join().is_err());
}
