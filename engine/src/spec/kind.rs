//! The filters by name, and the options of each: the one table that text, files and errors are made from.

use std::ops::RangeInclusive;

use super::filter::Form;
use super::options::{Options, name_of, one_of};
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::filters::lines::LineKind;
use crate::filters::scattered::bits::{Ageing, BitsSpec, Reservoir};
use crate::filters::scattered::buffers::{Accounting, BufferSpec};
use crate::filters::scattered::cells::{
    DecayingSpec, Decrement, FingerprintStableSpec, Lowering, Refill, StableSpec, Update,
};
use crate::filters::scattered::checks::MOST_HASHES;
use crate::filters::scattered::generations::{GenerationSpec, Rotate, Succession};
use crate::filters::scattered::rows::{
    CuckooSpec, Fingerprint, MOST_SLOTS, OnHit, RowEncoding, RowSpec, Victim,
};
use crate::theory::generations::{pair_fpr, pair_hashes};

/// A filter's mechanism and policy, its memory, seed and share aside.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum FilterKind {
    /// `bloom`, `rsbf`, `bsbf`, `bsbfsd`, `rlbsbf`.
    Bits(BitsSpec),
    /// `sbf`.
    Stable(StableSpec),
    /// `fpsbf`.
    FingerprintStable(FingerprintStableSpec),
    /// `bdbf`.
    Decaying(DecayingSpec),
    /// `sqf`, `qht`, `qhtd`, `qqht`, `qqhtd`, `rowlru`.
    Rows(RowSpec),
    /// `cuckoo`.
    Cuckoo(CuckooSpec),
    /// `a2`, `dbuf`.
    Generations(GenerationSpec),
    /// `lru`, `fpbuffer`.
    Buffer(BufferSpec),
}

const UPDATES: [(&str, Update); 2] = [("every", Update::Every), ("distinct", Update::Distinct)];
const DECREMENTS: [(&str, Decrement); 2] = [
    ("consecutive", Decrement::Consecutive),
    ("independent", Decrement::Independent),
];
const REFILLS: [(&str, Refill); 3] = [
    ("xor", Refill::Xor),
    ("overwrite", Refill::Overwrite),
    ("repaired", Refill::Repaired),
];
const ROW_ENCODINGS: [(&str, RowEncoding); 2] = [
    ("packed", RowEncoding::Packed),
    ("sorted", RowEncoding::Sorted),
];
const ROTATIONS: [(&str, Rotate); 2] = [("count", Rotate::Count), ("fill", Rotate::Fill)];
const ACCOUNTINGS: [(&str, Accounting); 3] = [
    ("full", Accounting::Full),
    ("hash", Accounting::HashOnly),
    ("hash32", Accounting::ShortHash),
];
const PROCESSES: [(&str, bool); 2] = [("described", false), ("tabled", true)];

const QUOTIENT_TABLES: [(&str, Victim, OnHit); 5] = [
    ("qht", Victim::Random, OnHit::Keep),
    ("qhtd", Victim::Random, OnHit::InsertAgain),
    ("qqht", Victim::Oldest, OnHit::Keep),
    ("qqhtd", Victim::Oldest, OnHit::InsertAgain),
    ("rowlru", Victim::Oldest, OnHit::MoveToFront),
];

const HASHES: RangeInclusive<u32> = 1..=MOST_HASHES;

impl FilterKind {
    /// Every name, in the order of the families.
    pub const NAMES: [&str; 19] = [
        "bloom", "rsbf", "bsbf", "bsbfsd", "rlbsbf", "sbf", "fpsbf", "bdbf", "sqf", "qht", "qhtd",
        "qqht", "qqhtd", "rowlru", "cuckoo", "a2", "dbuf", "lru", "fpbuffer",
    ];

    /// The name of the filter.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Bits(spec) => match spec.ageing {
                Ageing::Never => "bloom",
                Ageing::Reservoir(_) => "rsbf",
                Ageing::EachFilter => "bsbf",
                Ageing::OneFilter => "bsbfsd",
                Ageing::ByFill => "rlbsbf",
            },
            Self::Stable(_) => "sbf",
            Self::FingerprintStable(_) => "fpsbf",
            Self::Decaying(_) => "bdbf",
            Self::Rows(RowSpec {
                fingerprint: Fingerprint::Counted { .. },
                ..
            }) => "sqf",
            Self::Rows(spec) => QUOTIENT_TABLES
                .into_iter()
                .find(|(_, victim, on_hit)| (*victim, *on_hit) == (spec.victim, spec.on_hit))
                .map_or("qht", |(name, ..)| name),
            Self::Cuckoo(_) => "cuckoo",
            Self::Generations(spec) => match spec.succession {
                Succession::ActiveActive => "a2",
                Succession::WarmUp => "dbuf",
            },
            Self::Buffer(spec) if spec.guess == 0.0 => "lru",
            Self::Buffer(_) => "fpbuffer",
        }
    }

    /// The filter of that name, with the options it takes from `options`. Some defaults are those of the form.
    pub(super) fn from_options(
        name: &str,
        form: Form,
        options: &mut Options,
    ) -> Result<Self, SpecError> {
        let (slots, slot_bits, most_slot_bits, fingerprint_bits) = match form {
            Form::Scattered => (1, 3, 32, 4),
            Form::Line => (32, 16, 64, 6),
        };
        if let Some((_, victim, on_hit)) = QUOTIENT_TABLES.into_iter().find(|row| row.0 == name) {
            // A QHTD line counts its arrivals in one slot.
            let counts = form == Form::Line && name == "qhtd";
            let slots = slots - u32::from(counts);
            return Ok(Self::Rows(RowSpec {
                slots: options.integer("slots", slots, 1..=MOST_SLOTS)?,
                fingerprint: Fingerprint::Nonzero {
                    bits: options.integer("bits", slot_bits, 1..=most_slot_bits)?,
                },
                victim,
                on_hit,
                form: options.choice("rows", &ROW_ENCODINGS)?,
            }));
        }
        Ok(match name {
            "bloom" => bits(options, 4, Ageing::Never)?,
            "bsbf" => bits(options, 2, Ageing::EachFilter)?,
            "bsbfsd" => bits(options, 2, Ageing::OneFilter)?,
            "rlbsbf" => bits(options, 2, Ageing::ByFill)?,
            "rsbf" => {
                let process = if options.choice("as", &PROCESSES)? {
                    Reservoir::Tabled
                } else {
                    let threshold = options.decimal("pstar", 0.03)?;
                    Reservoir::Described { threshold }
                };
                bits(options, 2, Ageing::Reservoir(process))?
            }
            "sbf" => Self::Stable(StableSpec {
                hashes: options.integer("k", 2, HASHES)?,
                cell_bits: options.integer("d", 1, 1..=16)?,
                lowering: lowering(options)?,
                update: options.choice("update", &UPDATES)?,
                decrement: options.choice("decrement", &DECREMENTS)?,
                reach: options.decimal("reach", 1.0)?,
            }),
            "fpsbf" => Self::FingerprintStable(FingerprintStableSpec {
                hashes: options.integer("k", 2, HASHES)?,
                counter_bits: options.integer("c", 2, 1..=16)?,
                fingerprint_bits: options.integer("f", fingerprint_bits, 1..=16)?,
                eviction: options.decimal("xi", 0.5)?,
                refill: options.choice("refill", &REFILLS)?,
            }),
            "bdbf" => Self::Decaying(DecayingSpec {
                window: options.integer("window", 1 << 20, 1..=u64::MAX)?,
                hashes: options.optional_integer("k", HASHES)?,
                cell_bits: options.optional_integer("c", 2..=32)?,
            }),
            "sqf" => Self::Rows(RowSpec {
                slots: options.integer("slots", 1, 1..=MOST_SLOTS)?,
                fingerprint: Fingerprint::Counted {
                    remainder: options.integer("r", 2, 1..=27)?,
                    kept: options.integer("kept", 1, 1..=27)?,
                },
                victim: Victim::Random,
                on_hit: OnHit::Keep,
                form: options.choice("rows", &ROW_ENCODINGS)?,
            }),
            "cuckoo" => Self::Cuckoo(CuckooSpec {
                slots: options.integer("slots", 4, 1..=MOST_SLOTS)?,
                bits: options.integer("bits", 8, 1..=32)?,
                kicks: options.integer("kicks", 4, 1..=1000)?,
                form: options.choice("rows", &ROW_ENCODINGS)?,
            }),
            "a2" => generations(options, Succession::ActiveActive)?,
            "dbuf" => generations(options, Succession::WarmUp)?,
            "lru" => Self::Buffer(BufferSpec {
                accounting: options.choice("charge", &ACCOUNTINGS)?,
                guess: 0.0,
            }),
            "fpbuffer" => Self::Buffer(BufferSpec {
                accounting: options.choice("charge", &ACCOUNTINGS)?,
                guess: options.decimal("q", 0.1)?,
            }),
            _ => return Err(SpecError::new("filter", name, one_of(&Self::NAMES))),
        })
    }

    /// The options that [`from_options`](Self::from_options) reads, all of them.
    pub(super) fn options(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::Bits(spec) => {
                let mut options = vec![("k", spec.hashes.to_string())];
                match spec.ageing {
                    Ageing::Reservoir(Reservoir::Tabled) => options.push(("as", "tabled".into())),
                    Ageing::Reservoir(Reservoir::Described { threshold }) => {
                        options.push(("as", "described".into()));
                        options.push(("pstar", threshold.to_string()));
                    }
                    Ageing::Never | Ageing::EachFilter | Ageing::OneFilter | Ageing::ByFill => {}
                }
                options
            }
            Self::Stable(spec) => vec![
                ("k", spec.hashes.to_string()),
                ("d", spec.cell_bits.to_string()),
                match spec.lowering {
                    Lowering::Cells(cells) => ("p", cells.to_string()),
                    Lowering::FprAtMost(bound) => ("fps", bound.to_string()),
                },
                ("update", name_of(&UPDATES, &spec.update)),
                ("decrement", name_of(&DECREMENTS, &spec.decrement)),
                ("reach", spec.reach.to_string()),
            ],
            Self::FingerprintStable(spec) => vec![
                ("k", spec.hashes.to_string()),
                ("c", spec.counter_bits.to_string()),
                ("f", spec.fingerprint_bits.to_string()),
                ("xi", spec.eviction.to_string()),
                ("refill", name_of(&REFILLS, &spec.refill)),
            ],
            Self::Decaying(spec) => {
                let mut options = vec![("window", spec.window.to_string())];
                options.extend(spec.hashes.map(|hashes| ("k", hashes.to_string())));
                options.extend(spec.cell_bits.map(|bits| ("c", bits.to_string())));
                options
            }
            Self::Rows(spec) => {
                let mut options = vec![("slots", spec.slots.to_string())];
                match spec.fingerprint {
                    Fingerprint::Nonzero { bits } => options.push(("bits", bits.to_string())),
                    Fingerprint::Counted { remainder, kept } => {
                        options.push(("r", remainder.to_string()));
                        options.push(("kept", kept.to_string()));
                    }
                }
                options.push(("rows", name_of(&ROW_ENCODINGS, &spec.form)));
                options
            }
            Self::Cuckoo(spec) => vec![
                ("slots", spec.slots.to_string()),
                ("bits", spec.bits.to_string()),
                ("kicks", spec.kicks.to_string()),
                ("rows", name_of(&ROW_ENCODINGS, &spec.form)),
            ],
            Self::Generations(spec) => vec![
                ("k", spec.hashes.to_string()),
                ("rotate", name_of(&ROTATIONS, &spec.rotate)),
            ],
            Self::Buffer(spec) => {
                let mut options = vec![("charge", name_of(&ACCOUNTINGS, &spec.accounting))];
                if spec.guess != 0.0 {
                    options.push(("q", spec.guess.to_string()));
                }
                options
            }
        }
    }

    /// Builds the published, scattered form.
    pub(super) fn build_scattered(
        &self,
        memory_bytes: u64,
        seed: u64,
    ) -> Result<Box<dyn Filter>, BuildError> {
        Ok(match self {
            Self::Bits(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::Stable(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::FingerprintStable(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::Decaying(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::Rows(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::Cuckoo(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::Generations(spec) => Box::new(spec.build(memory_bytes, seed)?),
            Self::Buffer(spec) => Box::new(spec.build(memory_bytes, seed)?),
        })
    }
}

/// The filters that have a line form, by name.
const LINE_NAMES: [&str; 12] = [
    "bloom", "rsbf", "bsbf", "bsbfsd", "rlbsbf", "sbf", "fpsbf", "qht", "qhtd", "qqht", "qqhtd",
    "rowlru",
];

impl TryFrom<FilterKind> for LineKind {
    type Error = SpecError;

    fn try_from(kind: FilterKind) -> Result<Self, SpecError> {
        match kind {
            FilterKind::Bits(spec) => Ok(Self::Bits(spec)),
            FilterKind::Stable(spec) => Ok(Self::Stable(spec)),
            FilterKind::FingerprintStable(spec) => Ok(Self::FingerprintStable(spec)),
            FilterKind::Rows(spec) if matches!(spec.fingerprint, Fingerprint::Nonzero { .. }) => {
                Ok(Self::Row(spec))
            }
            _ => Err(SpecError::new(
                "form",
                "line",
                format!(
                    "scattered for {}; the line form is for {}",
                    kind.name(),
                    LINE_NAMES.join(", ")
                ),
            )),
        }
    }
}

fn bits(options: &mut Options, hashes: u32, ageing: Ageing) -> Result<FilterKind, SpecError> {
    Ok(FilterKind::Bits(BitsSpec {
        hashes: options.integer("k", hashes, HASHES)?,
        ageing,
    }))
}

fn lowering(options: &mut Options) -> Result<Lowering, SpecError> {
    let cells = options.number("p", "a whole number from 1 to the number of cells")?;
    let bound: Option<f64> = options.number("fps", "a number")?;
    match (cells, bound) {
        (Some(_), Some(bound)) => Err(SpecError::new(
            "fps",
            bound.to_string(),
            "either p or fps, not both",
        )),
        (Some(cells), None) => Ok(Lowering::Cells(cells)),
        (None, bound) => Ok(Lowering::FprAtMost(bound.unwrap_or(0.1))),
    }
}

fn generations(options: &mut Options, succession: Succession) -> Result<FilterKind, SpecError> {
    let hashes = options.optional_integer("k", HASHES)?;
    let fpr: Option<f64> = options.number("fpr", "a number")?;
    let hashes = match (hashes, fpr) {
        (Some(_), Some(fpr)) => {
            return Err(SpecError::new(
                "fpr",
                fpr.to_string(),
                "either k or fpr, not both",
            ));
        }
        (Some(hashes), None) => hashes,
        (None, fpr) => {
            let fpr = fpr.unwrap_or(0.1);
            let hashes = pair_hashes(fpr);
            if !(fpr > 0.0 && fpr < 1.0 && hashes <= MOST_HASHES) {
                let least = pair_fpr(MOST_HASHES + 1);
                let allowed = format!("a rate above {least:.2e} (k={MOST_HASHES}) and below 1");
                return Err(SpecError::new("fpr", fpr.to_string(), allowed));
            }
            hashes
        }
    };
    Ok(FilterKind::Generations(GenerationSpec {
        hashes,
        succession,
        rotate: options.choice("rotate", &ROTATIONS)?,
    }))
}
