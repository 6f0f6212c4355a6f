//! Dense lines: a key has two lines of one page, and a fresh key goes where it displaces less.
//!
//! Lines fill unevenly, so with one line a key most slots hold keys that are older than the age at
//! which misses begin. With a choice of two lines they fill evenly, and nearly all slots hold keys
//! of the promised age.
//!
//! ```text
//! page (64 lines, 4 KiB)   | 0 | 1 | ... | home | ... | partner | ... | 63 |
//!
//! page, home     the high bits of the hash, as in all line filters: floor(hash * lines / 2^64)
//! partner        home ^ step, step 1 to 63 from a product of the whole hash (`PageKey`)
//! fingerprint    the low bits of the hash
//!
//! visit   found in either line:   a duplicate; LRU moves it to the front of the line that holds it
//!         found in none:          pushed in front of the line with the lower load; of equal ones,
//!                                 in front of its home
//! ```
//!
//! Both lines lie in one page of memory, so a key costs two cache lines but one entry of the TLB.
//! A partition is a range of pages. Nothing outside its page affects a key.
//!
//! Each line has a **load**: the number of its insertions, in fractions of one, modulo 2^bits. Two
//! loads are compared by their wrapped difference. An insertion adds 1 and a part of what the line
//! is behind the other one (`CATCH_UP`). With insertions alone, a line that was left out for a
//! while would be refilled in a burst, at the expense of the keys that it holds. Forgiving a
//! part of the difference remembers fewer insertions, as the age of the oldest key does, and keeps
//! more keys than choosing the line whose oldest key is older (`bench/record/TRIED.md`).
//!
//! With LRU, a duplicate found in slot i of n moves i keys down, and adds i / n. Without that,
//! lines whose keys are seen again would get as many new keys as lines whose keys are not, and lose
//! those that wait: on streams with many duplicates ten times as many were missed.
//!
//! The load of a line takes no slot where slots are few (`slot`):
//!
//! ```text
//! 16-bit slots   | 31 fingerprints of 16 bits                       | load, 16 bits |
//! 32-bit slots   | 11 fingerprints of 32 bits | 5 of 31 bits, and a bit of the load each |
//! 64-bit slots   | 8 fingerprints of 63 bits, and a bit of the load each |
//! ```
//!
//! The clock word of lines with a window counts their live keys, so they need no load (`clocked`).

mod clocked;
mod rule;
mod slot;
mod spec;

pub(super) use clocked::build as build_clocked;
pub(in crate::filters) use spec::ROWS;
