//! `--metrics`: what is scraped while a run goes on is what its statistics say at the end.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use echoless_metrics::METRICS;
use serde_json::Value;

use crate::run::{Folder, dedup};

/// The page of an endpoint.
fn scrape(address: &str) -> String {
    let mut client = TcpStream::connect(address).unwrap();
    client.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    let mut page = String::new();
    client.read_to_string(&mut page).unwrap();
    page
}

/// The values that these statistics are expected to have on the page, but for times.
fn values(stats: &Value) -> Vec<(String, f64)> {
    let metrics = METRICS.iter().filter(|metric| metric.field != "seconds");
    metrics
        .filter_map(|metric| Some((metric.name(), stats[metric.field].as_f64()?)))
        .collect()
}

#[test]
fn a_scrape_has_the_statistics() {
    let folder = Folder::new();
    // More keys than the filter has slots.
    let records: String = (0..60_000_u64)
        .map(|number| format!("{} {}\n", number / 2, number * number % 997))
        .collect();
    folder.write("records", &records);
    for more in ["", "--filter clocked:bits=32 --window 1000", "--threads 2"] {
        let all = format!("-q -m 64k --stats stats {more} -o kept");
        let file = folder.dedup(format!("{all} records"));
        assert_eq!(file.code, 0, "{}", file.stderr);
        let expected = values(&folder.json("stats"));
        assert!(expected.len() > 15 && expected[0] == ("echoless_records_total".into(), 60e3));

        let all = all.replace("-q", "--metrics 0");
        let mut run = folder.command(format!("dedup {all}")).spawn().unwrap();
        let mut input = run.stdin.take().unwrap();
        let mut messages = BufReader::new(run.stderr.take().unwrap());
        let mut line = String::new();
        messages.read_line(&mut line).unwrap();
        let (_, address) = line.split_once("http://").expect("an address");
        let (address, path) = address.split_once('/').unwrap();
        assert!(
            address.starts_with("127.0.0.1:") && path == "metrics\n",
            "{line}"
        );
        input.write_all(records.as_bytes()).unwrap();
        // The records pass, and the filter reports, some time after they were written.
        let until = Instant::now() + Duration::from_secs(60);
        loop {
            let page = scrape(address);
            let found: HashMap<&str, f64> = page
                .lines()
                .filter_map(|line| line.split_once(' '))
                .filter_map(|(name, value)| Some((name, value.parse().ok()?)))
                .collect();
            let is_missing = |(name, value): &&(String, f64)| found.get(&name[..]) != Some(value);
            let missing: Vec<_> = expected.iter().filter(is_missing).collect();
            if missing.is_empty() {
                break;
            }
            assert!(Instant::now() < until, "{more}: {missing:?} not in {page}");
            thread::sleep(Duration::from_millis(5));
        }
        drop(input);
        assert!(run.wait().unwrap().success());
        assert_eq!(values(&folder.json("stats")), expected, "{more}");
    }
}

#[test]
fn an_address_that_cannot_be_taken_is_an_error_in_front_of_all_outputs() {
    let folder = Folder::with(&[("kept", "before")]);
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let run = folder.dedup(format!("--metrics {address} -o kept"));
    assert!(
        run.error().starts_with(&format!("--metrics {address}: ")),
        "{}",
        run.stderr
    );
    assert_eq!(folder.read("kept"), "before");
    dedup("--metrics eth0:9464", "").fails_with(
        "invalid --metrics=eth0:9464: expected ADDRESS:PORT, such as 127.0.0.1:9464, or a port of \
         127.0.0.1",
    );
}
