//! The shape of rows of fingerprints, scattered or as wide as a line: options, defaults and facts.

use crate::error::SpecError;
use crate::filters::Form;
use crate::filters::row::{Facts, Named, OptionRow};
use crate::memory::LINE_BYTES;
use crate::options::{Allowed, Value};
use crate::theory::fingerprints::{FingerprintGeometry, SlotWidth};

/// The most slots of a row: a word has a bit for each of them.
pub const MOST_SLOTS: u32 = 64;

/// The widths of slots in the scattered form, and in the line form.
const BITS: &str = "a whole number from 1 to 32, or 64 with form=line";

/// `slots`. In lines the defaults depend on each other.
const SLOTS: OptionRow = OptionRow::new("slots", Allowed::Whole(1, MOST_SLOTS as u64));
/// `bits`. A form that is set later may be the line form.
const WIDTH: OptionRow = OptionRow::new("bits", Allowed::Described(1, 64, BITS));

/// The slots of a scattered row, and their bits.
pub const SCATTERED: [OptionRow; 2] = [SLOTS.or(Value::Whole(1)), WIDTH.or(Value::Whole(3))];
/// The order of a queue, and of the slots of a line, is their order in memory.
pub const QUEUE: &[OptionRow] = &[
    SCATTERED[0],
    SCATTERED[1],
    OptionRow::choice("rows", &["packed"]),
];
/// The slots of a row that is a line.
pub const LINE: &[OptionRow] = &[
    SLOTS,
    OptionRow::new("bits", Allowed::Listed(&[8, 16, 32, 64])),
    OptionRow::choice("rows", &["packed"]),
];

/// The options of rows that are queues.
pub fn queue_options(form: Form) -> &'static [OptionRow] {
    match form {
        Form::Scattered => QUEUE,
        Form::Line => LINE,
    }
}

/// What is known of rows that are lines, in so much memory.
pub fn facts(named: &Named, memory: u64) -> Facts {
    let width = SlotWidth::from_bits(named.small("bits"));
    Facts {
        fpr_limit: width
            .ok()
            .map(|width| FingerprintGeometry::new(memory / LINE_BYTES, width).full_fpr()),
        ..Facts::touching(1.0)
    }
}

/// The width of slots that fill a line, of which `counters` hold no fingerprint.
///
/// # Errors
/// [`SpecError`] unless slots and bits fill a line.
pub fn width(named: &Named, counters: u32) -> Result<SlotWidth, SpecError> {
    let (asked, bits) = (named.small("slots"), named.small("bits"));
    if named.choice_name("rows") != "packed" {
        let rows = named.choice_name("rows");
        return Err(SpecError::new("rows", rows, "packed in the line form"));
    }
    let slots = |width: SlotWidth| width.slots() - counters;
    let mut widths = SlotWidth::ALL.iter().copied();
    let fitting = widths.find(|width| (slots(*width), width.bits()) == (asked, bits));
    fitting.ok_or_else(|| {
        let asked = format!("{asked} of {bits} bits");
        let shapes = SlotWidth::ALL.iter();
        let shapes = shapes.map(|width| format!("{} of {}", slots(*width), width.bits()));
        let shapes = shapes.collect::<Vec<_>>().join(", ");
        let allowed = format!("one of {shapes} bits in the line form");
        SpecError::new("slots", asked, allowed)
    })
}

/// Fills in the slots and bits of a line, of which neither, one or both are given. A given one
/// decides the other if it divides the line into whole slots, of which `counters` hold no
/// fingerprint.
///
/// # Errors
/// None: numbers that do not fit are rejected when the filter is built, with both in the message.
pub fn complete(named: &mut Named, form: Form, counters: u64) -> Result<(), SpecError> {
    if form == Form::Line {
        let (slots, bits) = (named.given("slots"), named.given("bits"));
        let widths = SlotWidth::ALL
            .iter()
            .map(|width| (u64::from(width.slots()) - counters, u64::from(width.bits())));
        let fitting = widths.filter(|(per_line, width)| {
            slots.is_none_or(|slots| slots == *per_line) && bits.is_none_or(|bits| bits == *width)
        });
        let chosen = fitting.min_by_key(|(_, width)| width.abs_diff(16));
        let (per_line, width) = chosen.unwrap_or((32 - counters, 16));
        named.set("slots", Value::Whole(slots.unwrap_or(per_line)));
        named.set("bits", Value::Whole(bits.unwrap_or(width)));
    }
    Ok(())
}
