//! The streaming quotient filter (Dutta 2013): rows of fingerprints that count bits.

use super::fingerprint::Fingerprint;
use super::store::{ENCODINGS, MOST_SLOTS, RowStore, row_lines, rows_in};
use super::table::{RowFilter, RowPolicy};
use echoless::BuildError;
use echoless::extend::{FilterRow, Head, MOST_SCATTERED, Named, OptionRow, names};
use echoless::memory::LINE_BYTES;
use echoless::spec::{Facts, Form};

const OPTIONS: &[OptionRow] = &[
    OptionRow::whole("slots", 1, MOST_SLOTS as u64, 1),
    // r: the bits of the remainder.
    OptionRow::whole("r", 1, 27, 2),
    // r': the low bits of it that are kept, at most r.
    OptionRow::whole("kept", 1, 27, 1),
    OptionRow::choice("rows", &names(&ENCODINGS)),
];

/// The streaming quotient filter.
pub(crate) static SQF: [FilterRow; 1] = [FilterRow {
    head: Head {
        name: "sqf",
        options: |_| OPTIONS,
        complete: Named::as_given,
    },
    default_form: Form::Scattered,
    scattered: Some(|named, memory, seed| Ok(Box::new(build(named, memory, seed)?))),
    cells: None,
    lines: None,
    facts: |named, _, _| Facts {
        cache_lines: {
            let (slots, encoding) = (named.small("slots"), named.choice("rows", &ENCODINGS));
            row_lines(encoding, slots, fingerprint(named).bits())
        },
        rate_model: None,
        // Its fingerprints are not equally likely.
        fpr_limit: None,
        most_memory: MOST_SCATTERED,
        memory_unit: LINE_BYTES,
        window: None,
        renews_keys: false,
        forgets_by_time: false,
        settles: true,
        power_of_two_rows: true,
    },
}];

fn fingerprint(named: &Named) -> Fingerprint {
    Fingerprint::Counted {
        remainder: named.small("r"),
        kept: named.small("kept"),
    }
}

fn build(named: &Named, memory_bytes: u64, seed: u64) -> Result<RowFilter, BuildError> {
    let (slots, encoding) = (named.small("slots"), named.choice("rows", &ENCODINGS));
    let fingerprint = fingerprint(named).check()?;
    let rows = rows_in(memory_bytes, encoding, slots, fingerprint.bits())?;
    // The row is the high bits of a hash, so their number is a power of two.
    let store = RowStore::new(encoding, 1 << rows.ilog2(), slots, fingerprint.bits())?;
    let policy = RowPolicy::RandomVictim { again: false };
    Ok(RowFilter::new(store, slots, fingerprint, policy, seed))
}
