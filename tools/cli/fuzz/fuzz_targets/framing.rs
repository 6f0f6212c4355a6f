//! The framing of call records and captures in memory: bytes that arrive in two pieces give the
//! same records and errors as bytes that arrive at once, and keys are made of every packet.
#![no_main]

use echoless_ber::{RecordScan, element, record_ends};
use echoless_packets::framing::{BlockKind, Framer, Next};
use echoless_packets::key::{KeyOptions, KeyReader};
use libfuzzer_sys::fuzz_target;

fn check_ber(bytes: &[u8], cut: usize) {
    let mut ends = Vec::new();
    record_ends(bytes, 0, &mut ends);
    assert_eq!(ends.last().copied().unwrap_or(0), bytes.len());
    let mut start = 0;
    for end in ends {
        assert!(end > start);
        let inner = element(&bytes[start..end]);
        assert!(inner.end <= end - start);
        let whole = RecordScan::default().end(bytes, start);
        let mut pieces = RecordScan::default();
        let first = &bytes[..(start + cut).min(bytes.len())];
        let joined = match pieces.end(first, start) {
            Ok(None) => pieces.end(bytes, start),
            found => found,
        };
        // A record that ends where the bytes end may go on behind them.
        assert_eq!(joined, whole, "{start} {cut}");
        start = end;
    }
}

/// The blocks of a capture and how it ends.
fn blocks(bytes: &[u8], cut: usize) -> (Vec<usize>, String) {
    let (mut framer, mut at, mut ends) = (Framer::with_max_block(1 << 16), 0, Vec::new());
    let reader = KeyReader::new(KeyOptions::default()).unwrap();
    let (mut scratch, mut visible) = (Vec::new(), cut.min(bytes.len()));
    loop {
        let buffer = &bytes[..visible];
        match framer.next_block(buffer, at, visible == bytes.len()) {
            Ok(Next::Block { range, kind }) => {
                assert!(range.start == at && range.end > at && range.end <= visible);
                if let BlockKind::Packet(block) = kind {
                    let packet = block.packet(buffer);
                    let key = reader.key(&packet, &mut scratch);
                    assert!(key.parts().iter().map(|part| part.len()).sum::<usize>() > 0);
                    let _ = reader.ignored_fields(&packet);
                }
                at = range.end;
                ends.push(at);
            }
            Ok(Next::NeedMore(_)) => visible = bytes.len(),
            Ok(Next::End) => return (ends, String::new()),
            Err(error) => return (ends, error.to_string()),
        }
    }
}

fuzz_target!(|bytes: &[u8]| {
    let [cut, bytes @ ..] = bytes else {
        return;
    };
    let cut = usize::from(*cut);
    check_ber(bytes, cut);
    assert_eq!(blocks(bytes, cut), blocks(bytes, usize::MAX));
});
