//! Records inside of elements, against a plain model that walks the trees.

use echoless_ber::{ContainerScan, Invalid, MAX_DEPTH, Piece, PieceKind, container_of};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::{Content, Form, Tree, tag_text, tree};

/// Three tags, so that paths often match.
fn path_tree() -> impl Strategy<Value = Tree> {
    fn retag(tree: &mut Tree) {
        tree.class = 2;
        tree.number %= 3;
        if let Content::Trees { inside, .. } = &mut tree.content {
            inside.iter_mut().for_each(retag);
        }
    }
    tree().prop_map(|mut tree| {
        retag(&mut tree);
        tree
    })
}

fn path_text(path: &[u32]) -> String {
    let tags = path.iter().map(|number| tag_text((2, *number), true));
    tags.collect::<Vec<_>>().join("/")
}

/// The bytes of the records on a path inside of these trees, in order.
fn records(trees: &[Tree], path: &[u32]) -> Vec<Vec<u8>> {
    match path {
        [] => trees.iter().map(|tree| tree.bytes(Form::Own)).collect(),
        [number, rest @ ..] => (trees.iter())
            .filter(|tree| tree.number == *number && matches!(tree.content, Content::Trees { .. }))
            .flat_map(|tree| records(tree.inside(), rest))
            .collect(),
    }
}

/// The pieces of an input that arrives `step` bytes at a time.
fn pieces(bytes: &[u8], path: &str, step: usize) -> Result<(Vec<Piece>, ContainerScan), Invalid> {
    let mut scan = ContainerScan::new(&path.parse().unwrap());
    let (mut at, mut arrived, mut pieces) = (0, 0, Vec::new());
    while arrived < bytes.len() {
        arrived = bytes.len().min(arrived + step);
        while let Some(piece) = scan.next(&bytes[..arrived], at)? {
            at = piece.end;
            pieces.push(piece);
        }
    }
    Ok((pieces, scan))
}

/// The bytes of the records, and those of everything else.
fn split(bytes: &[u8], pieces: &[Piece]) -> (Vec<Vec<u8>>, Vec<u8>) {
    let (mut records, mut frame, mut start) = (Vec::new(), Vec::new(), 0);
    for piece in pieces {
        match piece.kind {
            PieceKind::Record => records.push(bytes[start..piece.end].to_vec()),
            PieceKind::Frame | PieceKind::Opens { .. } => {
                frame.extend_from_slice(&bytes[start..piece.end]);
            }
        }
        start = piece.end;
    }
    (records, frame)
}

fn bytes_of(trees: &[Tree], form: Form) -> Vec<u8> {
    trees.iter().flat_map(|tree| tree.bytes(form)).collect()
}

proptest! {
    #[test]
    fn records_are_those_on_the_path(
        trees in vec(path_tree(), 0..5),
        filler in vec(vec(prop::sample::select(vec![0x00, 0xff]), 0..4), 5),
        path in vec(0..3_u32, 1..4),
        step in 1..40_usize,
    ) {
        let mut bytes = Vec::new();
        for (tree, filler) in trees.iter().zip(&filler) {
            bytes.extend(filler);
            tree.write(Form::Own, &mut bytes);
        }
        let text = path_text(&path);
        let (whole, scan) = pieces(&bytes, &text, usize::MAX).unwrap();
        prop_assert!(scan.is_outside());
        prop_assert_eq!(whole.last().map_or(0, |piece| piece.end), bytes.len());
        let found = split(&bytes, &whole);
        prop_assert_eq!(&found.0, &records(&trees, &path));
        // However the bytes arrive, the records and what is around them are the same.
        let (arrived, scan) = pieces(&bytes, &text, step).unwrap();
        prop_assert!(scan.is_outside());
        prop_assert_eq!(split(&bytes, &arrived), found);
    }

    /// The octets that a piece names are the length, which reaches to the piece that closes.
    #[test]
    fn lengths_are_those_of_the_content(
        trees in vec(path_tree(), 0..5),
        path in vec(0..3_u32, 1..4),
        step in 1..40_usize,
    ) {
        let bytes = bytes_of(&trees, Form::Own);
        let (pieces, _) = pieces(&bytes, &path_text(&path), step).unwrap();
        let mut open = Vec::new();
        for piece in &pieces {
            if let PieceKind::Opens { length_at, length } = piece.kind {
                let (first, more) = bytes[length_at..piece.end].split_first().unwrap();
                let number = more.iter().fold(0, |number, octet| number << 8 | u64::from(*octet));
                let written = match (*first, more.len()) {
                    (0x80, 0) => None,
                    (first, 0) => Some(first.into()),
                    (first, octets) => {
                        prop_assert_eq!(usize::from(first), 0x80 | octets);
                        Some(number)
                    }
                };
                prop_assert_eq!(written, length);
                open.push(length.map(|length| piece.end + length as usize));
            }
            for _ in 0..piece.closes {
                let end = open.pop().unwrap();
                prop_assert_eq!(end.unwrap_or(piece.end), piece.end);
            }
        }
        prop_assert_eq!(open, []);
    }

    /// Damaged inputs are cut into pieces without gaps, up to an error.
    #[test]
    fn any_bytes_are_cut(
        trees in vec(path_tree(), 1..4),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        step in 1..40_usize,
    ) {
        let mut bytes = bytes_of(&trees, Form::Own);
        for (at, byte) in &changes {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        for step in [step, usize::MAX] {
            let mut scan = ContainerScan::new(&path_text(&[1, 2]).parse().unwrap());
            let (mut at, mut arrived) = (0, 0);
            'arrivals: while arrived < bytes.len() {
                arrived = bytes.len().min(arrived.saturating_add(step));
                loop {
                    match scan.next(&bytes[..arrived], at) {
                        Ok(Some(piece)) => {
                            prop_assert!(at < piece.end && piece.end <= arrived);
                            at = piece.end;
                        }
                        Ok(None) => break,
                        Err(invalid) => {
                            prop_assert_eq!(scan.next(&bytes[..arrived], at), Err(invalid));
                            break 'arrivals;
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn zeros_are_filler_in_a_definite_length_and_the_end_of_an_indefinite_one() {
    let path = "0xA0/0xA1";
    let bytes =
        b"\0\xff\xa0\x0c\0\0\xa1\x06\0\x80\x01x\0\0\0\0\xa0\x80\xa1\x80\x80\x01y\0\0\0\0\xff\0";
    for step in [1, 3, usize::MAX] {
        let (pieces, scan) = pieces(bytes, path, step).unwrap();
        let (records, frame) = split(bytes, &pieces);
        assert_eq!(records, [b"\x80\x01x", b"\x80\x01y"], "{step}");
        assert_eq!(frame.len(), bytes.len() - 6);
        assert!(scan.is_outside() && scan.has_container());
        let closed: usize = pieces.iter().map(|piece| piece.closes).sum();
        assert_eq!(closed, 4);
    }
}

#[test]
fn only_constructed_elements_hold_records() {
    // A primitive element on the path, an empty container, and one off the path.
    for (bytes, has_container) in [
        (&b"\xa0\x04\x81\x02\x80\0"[..], false),
        (b"\xa0\x02\xa1\0", true),
        (b"\xa1\x04\xa1\x02\x80\0", false),
        (b"\xa1\x80\xa0\x80\xa1\x02\x80\0\0\0\0\0", false),
    ] {
        let (pieces, scan) = pieces(bytes, "0xA0/0xA1", usize::MAX).unwrap();
        assert_eq!(split(bytes, &pieces).0, Vec::<Vec<u8>>::new(), "{bytes:x?}");
        assert_eq!(scan.has_container(), has_container, "{bytes:x?}");
        assert!(scan.is_outside());
    }
}

#[test]
fn a_scan_says_what_is_wrong() {
    let scan = |bytes: &[u8], step| {
        let outcome = pieces(bytes, "0xA0", step);
        outcome.map(drop).map_err(|error| (error.at, error.problem))
    };
    for (bytes, at, problem) in [
        (
            &b"\xa0\x03\x80\x02ab"[..],
            0,
            "an element is longer than the value around it",
        ),
        (
            b"\xa0\x03\xa1\x80\x80\0\0\0",
            0,
            "an indefinite length without end-of-contents",
        ),
        (
            b"\xa0\x01\x80\0\0",
            0,
            "an element is cut off by the end of the value around it",
        ),
        (
            b"\xa0\x03\x80\0\x9f\x20\0",
            0,
            "an element is cut off by the end of the value around it",
        ),
        (
            b"\xa0\x80\xa1\x80\xff\xff\xff\xff\xff\xff\xff\xff",
            2,
            "a tag number exceeds 32 bits",
        ),
        (
            b"\xa0\x80\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            0,
            "a tag number exceeds 32 bits",
        ),
        (
            b"\xa1\0\xa0\x88\xff\xff\xff\xff\xff\xff\xff\xff",
            0,
            "an element is longer than the value around it",
        ),
        (
            b"\xa0\xff",
            0,
            "a length begins with the reserved byte 0xFF",
        ),
    ] {
        for step in [1, usize::MAX] {
            assert_eq!(scan(bytes, step), Err((at, problem)), "{bytes:x?}");
        }
    }
    let outer = b"\xa1\x80".repeat(MAX_DEPTH);
    assert_eq!(scan(&outer, 1), Ok(()));
    let deeper = [&outer[..], b"\xa1\x80"].concat();
    assert_eq!(scan(&deeper, 1), Err((0, "nested deeper than 32 levels")));
}

#[test]
fn an_unfinished_input_is_inside() {
    let bytes = b"\xa0\x0a\x80\x01x\xa1\x80\x82\x01y\0\0";
    for cut in 0..=bytes.len() {
        let (pieces, scan) = pieces(&bytes[..cut], "0xA0", 1).unwrap();
        let whole = pieces.last().map_or(0, |piece| piece.end);
        assert_eq!(scan.is_outside(), whole == 0 || cut == bytes.len(), "{cut}");
        let needs = match cut {
            4 => Some(3),
            _ => None,
        };
        assert_eq!(scan.needs(), needs, "{cut}");
    }
}

#[test]
fn the_container_of_a_whole_input_is_found() {
    let call = |key: u8| vec![0xa5, 5, 0x80, 3, key, key, key];
    let list = |calls: &[u8]| {
        let calls: Vec<u8> = calls.iter().flat_map(|key| call(*key)).collect();
        [&[0x63, calls.len() as u8][..], &calls].concat()
    };
    let batch = |list: &[u8]| {
        let content = [&b"\x64\x03\x80\x01x"[..], list, b"\x6f\x02\x80\0"].concat();
        [&[0x61, content.len() as u8][..], &content].concat()
    };
    for (element, path) in [
        (batch(&list(&[1, 2])), Some("0x61/0x63")),
        (batch(&list(&[1, 2, 3, 4, 5])), Some("0x61/0x63")),
        (list(&[1, 2, 3]), Some("0x63")),
        // A call itself tells nothing, nor does damage.
        (call(1), None),
        (vec![0x80, 1, 0], None),
        (batch(&list(&[1, 2]))[..20].to_vec(), None),
        (Vec::new(), None),
    ] {
        assert_eq!(container_of(&element).as_deref(), path, "{element:x?}");
    }
    // Record types of their own, of which none is most of the content, and indefinite lengths.
    let types = b"\x30\x80\xa0\x03\x80\x01x\xa1\x03\x80\x01x\xa2\x03\x80\x01x\0\0";
    assert_eq!(container_of(types).as_deref(), Some("0x30"));
}
