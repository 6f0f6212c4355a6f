//! `--tag`: every packet passes, and duplicates carry a comment.
//!
//! A comment is an option of a pcapng packet block. It goes in front of the other options, so that
//! options which are malformed, or lack their end, stay as they are:
//!
//! ```text
//! | type | length | 20 bytes, data, padding |                   | options | length |
//! | type | longer | 20 bytes, data, padding | comment | (end)   | options | longer |
//! ```
//!
//! A block without options gets the end of its options, too.

use echoless_records::chunk::Chunk;

/// The comment of a duplicate.
const COMMENT: &[u8] = b"echoless: duplicate";

/// `opt_comment`, and the padding of its value.
const OPTION_COMMENT: u16 = 1;
const OPTION_ALIGN: usize = 4;

/// Type and length in front of the body of a block, and the length behind it.
const BEFORE: usize = 8;
const BEHIND: usize = 4;

/// The types of packet blocks that can have options: obsolete and enhanced.
const WITH_OPTIONS: [u32; 2] = [2, 6];

/// Whether a pcapng packet block can have a comment: simple packet blocks have no options.
pub(crate) fn has_options(block: &[u8]) -> bool {
    let first = block.first_chunk().copied().unwrap_or_default();
    WITH_OPTIONS.contains(&u32::from_le_bytes(first))
        || WITH_OPTIONS.contains(&u32::from_be_bytes(first))
}

/// Appends the blocks of a chunk whose verdicts are spread over them, and the length of each.
pub(crate) fn append_blocks(chunk: &Chunk, out: &mut Vec<u8>, lengths: &mut Vec<u64>) {
    let mut packets = chunk.keys.packets.blocks.iter();
    let mut unkeyed = chunk.unkeyed.all.iter().copied().peekable();
    let duplicates = chunk.duplicates();
    for record in 0..chunk.records() {
        let before = out.len();
        let block = chunk.bytes_of(record..record + 1);
        let packet = match unkeyed.next_if_eq(&record) {
            Some(_) => None,
            None => packets.next(),
        };
        match packet {
            Some(packet) if duplicates[record / 64] >> (record % 64) & 1 == 1 => {
                let data_end = packet.data.end - chunk.record_start(record);
                append_tagged(out, block, data_end);
            }
            Some(_) | None => out.extend_from_slice(block),
        }
        lengths.push((out.len() - before) as u64);
    }
}

/// Appends a packet block with a comment. `data_end` is the offset in the block behind the captured
/// bytes.
fn append_tagged(out: &mut Vec<u8>, block: &[u8], data_end: usize) {
    // The first byte of the type is 0 only in big-endian files: it is less than 256.
    let big_endian = block[0] == 0;
    let u16_bytes = |number: u16| match big_endian {
        true => number.to_be_bytes(),
        false => number.to_le_bytes(),
    };
    let options_end = block.len() - BEHIND;
    // The data begin at a multiple of 4. A writer may have left out the padding of the last ones.
    let options = data_end.next_multiple_of(OPTION_ALIGN).min(options_end);
    let ends_options = options == options_end;
    let padded = COMMENT.len().next_multiple_of(OPTION_ALIGN);
    let added = 4 + padded + if ends_options { 4 } else { 0 };
    // A block that is read has at most 16 MiB.
    let len = (block.len() + added) as u32;
    let len = if big_endian {
        len.to_be_bytes()
    } else {
        len.to_le_bytes()
    };
    out.extend_from_slice(&block[..4]);
    out.extend_from_slice(&len);
    out.extend_from_slice(&block[BEFORE..options]);
    out.extend_from_slice(&u16_bytes(OPTION_COMMENT));
    out.extend_from_slice(&u16_bytes(COMMENT.len() as u16));
    out.extend_from_slice(COMMENT);
    out.resize(out.len() + padded - COMMENT.len(), 0);
    if ends_options {
        out.extend_from_slice(&[0; 4]);
    }
    out.extend_from_slice(&block[options..options_end]);
    out.extend_from_slice(&len);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of type 6 with 3 bytes of data and these options, and the offset behind the data.
    fn block(big_endian: bool, options: &[u8]) -> (Vec<u8>, usize) {
        let number = |number: u32| match big_endian {
            true => number.to_be_bytes(),
            false => number.to_le_bytes(),
        };
        let len = number(36 + options.len() as u32);
        let mut block = [number(6), len].concat();
        block.extend([0xaa; 20]);
        block.extend(b"abc\0");
        block.extend(options);
        block.extend(len);
        (block, 31)
    }

    #[test]
    fn the_comment_comes_first_and_the_lengths_grow() {
        let mut end = [0, 2, 0, 4].to_vec();
        end.extend([0; 8]);
        for (big_endian, options) in [(false, &[][..]), (true, &[]), (true, &end)] {
            let (plain, data_end) = block(big_endian, options);
            let mut tagged = b"in front".to_vec();
            append_tagged(&mut tagged, &plain, data_end);
            let comment: &[u8] = match big_endian {
                true => b"\x00\x01\x00\x13echoless: duplicate\0",
                false => b"\x01\x00\x13\x00echoless: duplicate\0",
            };
            let all = if options.is_empty() {
                [comment, &[0; 4]].concat()
            } else {
                [comment, options].concat()
            };
            let (expected, _) = block(big_endian, &all);
            assert_eq!(tagged[8..], expected, "{big_endian} {options:?}");
        }
    }

    #[test]
    fn simple_packets_have_no_options() {
        for (number, expected) in [(2_u32, true), (3, false), (6, true)] {
            assert_eq!(has_options(&number.to_be_bytes()), expected);
            assert_eq!(has_options(&number.to_le_bytes()), expected);
        }
    }
}
