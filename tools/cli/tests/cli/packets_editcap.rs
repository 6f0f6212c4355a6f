//! The packets that `editcap` keeps, where its rule can be expressed: it compares whole frames,
//! with the N - 1 packets before, or with those inside a time.

use std::process::Command;

use echoless_packets::LinkType;
use echoless_packets::synth::Generator;
use echoless_packets::writer::PcapWriter;

use crate::packets_files::sample;
use crate::packets_support::{packet_blocks, packets};
use crate::run::file;

/// Whether `editcap` is installed; a message if it is absent.
fn has_editcap() -> bool {
    let found = Command::new("editcap").arg("--version").output().is_ok();
    if !found {
        eprintln!("skipped: editcap is absent");
    }
    found
}

/// Generated frames with copies up to 40 packets later, with times that do not go back.
fn generated(seed: u64) -> Vec<u8> {
    let mut draws = Generator::new(seed);
    let mut frames: Vec<Vec<u8>> = Vec::new();
    let mut file = PcapWriter::new(false, false, LinkType::ETHERNET);
    let mut time = 1_700_000_000_000_000;
    for _ in 0..3000 {
        let copied = draws.below(3) == 0 && !frames.is_empty();
        let frame = if copied {
            let back = 1 + draws.below(frames.len().min(40) as u64) as usize;
            frames[frames.len() - back].clone()
        } else {
            // Random bytes: no frame is a copy by chance.
            let mut frame = draws.payload(200);
            frame.extend(draws.below(u64::MAX).to_be_bytes());
            frame
        };
        time += draws.below(2000);
        file.packet(time, &frame, frame.len() as u32);
        frames.push(frame);
    }
    file.into_bytes()
}

/// Compares the packets that both keep.
fn compare(capture: &[u8], editcap: &[&str], own: &[&str]) {
    let directory = tempfile::tempdir().unwrap();
    let input = file(directory.path(), "input", capture);
    let output = file(directory.path(), "output", b"");
    let run = Command::new("editcap")
        .args(["-F", "pcap"])
        .args(editcap)
        .args([&input, &output])
        .output()
        .unwrap();
    assert!(run.status.success(), "{editcap:?}: {run:?}");
    let theirs = std::fs::read(output).unwrap();
    let mut args = vec!["--from", "link", "--ignore", "none"];
    args.extend_from_slice(own);
    args.push(&input);
    let ours = packets(&args, b"").bytes();
    assert!(ours.len() < capture.len());
    assert!(
        packet_blocks(&ours) == packet_blocks(&theirs),
        "{editcap:?}"
    );
}

#[test]
fn the_packets_of_editcap_are_kept() {
    if !has_editcap() {
        return;
    }
    let mut captures: Vec<Vec<u8>> = (0..3).map(generated).collect();
    if let Some(sample) = sample() {
        captures.push(std::fs::read(sample).unwrap());
    }
    for capture in &captures {
        compare(capture, &["-d"], &["--window-packets", "4"]);
        for window in [2_u32, 10, 30, 100] {
            let theirs = window.to_string();
            let ours = (window - 1).to_string();
            compare(capture, &["-D", &theirs], &["--window-packets", &ours]);
        }
        for (theirs, ours) in [("0.0105", "10500us"), ("0.03", "30ms"), ("1", "1s")] {
            compare(capture, &["-w", theirs], &["--window", ours]);
        }
    }
}
