//! The interface description of pcapng: link type, snap length, and the clock of its packets.

use super::error::InvalidField;
use crate::bytes::ByteOrder;
use crate::packet::LinkType;

const OPTION_END: u16 = 0;
const OPTION_TSRESOL: u16 = 9;
const OPTION_TSOFFSET: u16 = 14;

/// What later packets need of an interface.
#[derive(Debug, Clone)]
pub(super) struct Interface {
    pub(super) link: LinkType,
    /// The most captured bytes of a packet; 0 is no limit.
    pub(super) snap_len: u32,
    resolution: Resolution,
    /// Seconds to add to every time.
    offset: i64,
}

/// The unit of a time stamp (option `if_tsresol`).
#[derive(Debug, Clone, Copy)]
enum Resolution {
    /// A power of ten of at least a nanosecond: nanoseconds in a unit.
    Coarse(u64),
    /// A power of ten below a nanosecond: units in a nanosecond.
    Fine(u64),
    /// Seconds are divided by 2 to this power, at most 63.
    Binary(u32),
}

impl Resolution {
    /// Microseconds: the default of the format.
    const DEFAULT: Self = Self::Coarse(1000);

    fn from_option(value: u8) -> Result<Self, InvalidField> {
        let exponent = u32::from(value & 0x7f);
        if value & 0x80 != 0 && exponent <= 63 {
            return Ok(Self::Binary(exponent));
        }
        match exponent {
            0..=9 if value & 0x80 == 0 => Ok(Self::Coarse(10u64.pow(9 - exponent))),
            10..=19 if value & 0x80 == 0 => Ok(Self::Fine(10u64.pow(exponent - 9))),
            0.. => Err(InvalidField::new(
                "if_tsresol",
                format!("{value:#04x}"),
                "10 to the power of -0 to -19 (0x00 to 0x13) or 2 to the power of -0 to -63 \
                 (0x80 to 0xbf)",
            )),
        }
    }

    fn nanoseconds(self, units: u64) -> i128 {
        match self {
            Self::Coarse(each) => i128::from(units) * i128::from(each),
            Self::Fine(units_each) => i128::from(units / units_each),
            Self::Binary(exponent) => (i128::from(units) * 1_000_000_000) >> exponent,
        }
    }
}

impl Interface {
    /// Reads the body of an interface description block: 8 bytes, then options.
    pub(super) fn read(order: ByteOrder, body: &[u8]) -> Result<Self, InvalidField> {
        let mut interface = Self {
            link: LinkType(order.u16(body, 0)),
            snap_len: order.u32(body, 4),
            resolution: Resolution::DEFAULT,
            offset: 0,
        };
        let mut rest = &body[8..];
        while rest.len() >= 4 {
            let (code, len) = (order.u16(rest, 0), usize::from(order.u16(rest, 2)));
            if code == OPTION_END {
                break;
            }
            let padded = len.next_multiple_of(4);
            let Some(value) = rest.get(4..4 + len).filter(|_| rest.len() >= 4 + padded) else {
                let allowed = format!("at most {} (the end of the block)", rest.len() - 4);
                return Err(InvalidField::new("option length", len, allowed));
            };
            match (code, len) {
                (OPTION_TSRESOL, 1) => interface.resolution = Resolution::from_option(value[0])?,
                (OPTION_TSRESOL, _) => {
                    return Err(InvalidField::new("length of if_tsresol", len, "1"));
                }
                (OPTION_TSOFFSET, 8) => interface.offset = order.i64(value, 0),
                (OPTION_TSOFFSET, _) => {
                    return Err(InvalidField::new("length of if_tsoffset", len, "8"));
                }
                (_, _) => {}
            }
            rest = &rest[4 + padded..];
        }
        Ok(interface)
    }

    /// The time of a packet in nanoseconds, if an `i64` can hold it.
    pub(super) fn timestamp(&self, units: u64) -> Option<i64> {
        let offset = i128::from(self.offset) * 1_000_000_000;
        i64::try_from(self.resolution.nanoseconds(units) + offset).ok()
    }
}
