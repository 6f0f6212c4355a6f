//! The format is that of `engine/FORMAT.md`: a file built by hand is read, and written alike, and
//! states that were once written are read forever.

use echoless::filters::lines::Progress;
use echoless::memory::Line;
use echoless::state::{Header, StateError, StateReader, StateWriter};
use echoless::{Batch, Filter, KeyHash, LineFilter};
use twox_hash::XxHash3_64;

use crate::parse;
use crate::state::hasher;

/// The first bytes of a file, and their checksum.
pub(crate) fn prelude() -> (Vec<u8>, u64) {
    let bytes = b"\x8fECH\r\n\x1a\n\x01\0\0\0".to_vec();
    let sum = XxHash3_64::oneshot_with_seed(0, &bytes);
    (bytes, sum)
}

/// A section behind one with the checksum `before`, and its checksum.
pub(crate) fn section(kind: u32, payload: &[u8], before: u64) -> (Vec<u8>, u64) {
    let mut bytes = [kind.to_le_bytes(), (payload.len() as u32).to_le_bytes()].concat();
    bytes.extend(payload);
    let sum = XxHash3_64::oneshot_with_seed(before, &bytes);
    bytes.extend(sum.to_le_bytes());
    (bytes, sum)
}

/// The prelude and the header of a state of `count` lines from line `first` of `lines`.
pub(crate) fn header(lines: u64, first: u64, count: u64, flags: u32, spec: &str) -> Vec<u8> {
    let mut payload: Vec<u8> = [lines, first, count, 0, 7].map(u64::to_le_bytes).concat();
    let texts = [flags, 6, spec.len() as u32];
    payload.extend(texts.map(u32::to_le_bytes).concat());
    payload.extend(b"wyhash");
    payload.extend(spec.as_bytes());
    let (bytes, seed) = prelude();
    [bytes, section(1, &payload, seed).0].concat()
}

/// As `FORMAT.md` says, without a word of this library.
#[test]
fn a_file_built_by_hand_is_a_state() {
    let spec = "qqht:slots=8,bits=64,rows=packed,form=line,memory=128B";
    let mut header = Vec::new();
    for number in [
        2_u64,
        0,
        2,
        9,
        hasher().hash("the id of a key hasher").get(),
    ] {
        header.extend(number.to_le_bytes());
    }
    for number in [1_u32, 6, spec.len() as u32] {
        header.extend(number.to_le_bytes());
    }
    header.extend(b"wyhash");
    header.extend(spec.as_bytes());
    // Line 1, and then a line 0 that is empty.
    let line = [1_u64, 2, 3, 4, 5, 6, 7, 0x0102_0304_0506_0708];
    let mut full = [
        &1_u64.to_le_bytes()[..],
        &1_u32.to_le_bytes(),
        &0_u64.to_le_bytes(),
    ]
    .concat();
    full.extend(line.iter().flat_map(|word| word.to_le_bytes()));
    let empty = [
        &0_u64.to_le_bytes()[..],
        &1_u32.to_le_bytes(),
        &0_u64.to_le_bytes(),
    ]
    .concat();
    // A key of line 0, whose fingerprint is all of its 63 ones.
    let key = u64::MAX >> 1;
    let mut keys = [
        &1_u32.to_le_bytes()[..],
        &1_u32.to_le_bytes(),
        &77_u64.to_le_bytes(),
    ]
    .concat();
    keys.extend(77_u64.to_le_bytes());
    keys.extend(1_u32.to_le_bytes());
    keys.extend(key.to_le_bytes());
    let mut commit: Vec<u8> = [30_u64, 20, 0, 0].map(u64::to_le_bytes).concat();
    commit.extend(b"caller");

    let (mut file, mut sum) = prelude();
    for (kind, payload) in [
        (1, &header),
        (2, &full),
        (2, &empty),
        (3, &keys),
        (4, &commit),
        (5, &Vec::new()),
    ] {
        let (bytes, next) = section(kind, payload, sum);
        file.extend(bytes);
        sum = next;
    }

    let saved = StateReader::open(&file[..]).unwrap();
    saved.check(&parse(spec), &hasher()).unwrap();
    assert_eq!(
        (saved.header().segment, saved.header().starts_empty),
        (9, true)
    );
    let restored = saved.restore().unwrap();
    assert_eq!(restored.bytes, b"caller");
    let progress = restored.filter.progress();
    assert_eq!(
        (progress.observed, progress.fresh, progress.evictions),
        (30, 20, 0)
    );
    assert_eq!(restored.progress, progress);
    let lines = restored.filter.lines();
    assert_eq!(lines[1].0, line);
    let ones: u32 = lines[0].0.iter().map(|word| word.count_ones()).sum();
    assert_eq!(ones, 63);
    assert!(restored.filter.contains(KeyHash::from_uniform(key)));

    let header = Header::new(&parse(spec), &hasher()).unwrap();
    let header = header.segment(9).starts_empty(true);
    let mut writer = StateWriter::new(Vec::new(), &header).unwrap();
    writer.append_block(1, 0, &[Line(line)]).unwrap();
    writer.append_block(0, 0, &[Line::EMPTY]).unwrap();
    writer
        .append_keys(Batch::at(&[KeyHash::from_uniform(key)], 77), 77)
        .unwrap();
    let progress = Progress {
        observed: 30,
        fresh: 20,
        ..Progress::default()
    };
    writer.append_commit(progress, b"caller").unwrap();
    assert_eq!(writer.mark().position, file.len() as u64 - 16);
    assert_eq!(writer.end().unwrap(), file);
}

/// Checks that every flipped bit of a state is found, and an end after each of its bytes.
pub(crate) fn assert_damage_is_found(bytes: &[u8], load: impl Fn(&[u8]) -> Result<(), StateError>) {
    load(bytes).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.to_vec();
            damaged[at] ^= 1 << bit;
            let error = load(&damaged).unwrap_err();
            let found = match error {
                // Magic and version have no checksum of their own.
                StateError::Unreadable(_) => at < 12,
                StateError::Damaged { .. } | StateError::Truncated { .. } => at >= 12,
                _ => false,
            };
            assert!(found, "byte {at}, bit {bit}: {error}");
        }
        let error = load(&bytes[..at]).unwrap_err();
        assert!(
            matches!(error, StateError::Truncated { .. }),
            "{at}: {error}"
        );
    }
}
