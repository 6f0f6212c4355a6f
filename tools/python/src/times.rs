//! When keys came: ticks, from numbers or from times with a unit.

use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::columns::Column;
use crate::errors::{invalid, wrong_type};
use crate::numpy::Array;
use crate::{arrow, numpy};

const ALLOWED: &str = "an int for all keys, or a list of them, a numpy array or Arrow column of \
     integers or times, one for each key";

/// The length of a tick, if the filter knows it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tick {
    pub(crate) name: &'static str,
    pub(crate) nanoseconds: u64,
}

const TICKS: [Tick; 4] = [
    Tick {
        name: "ns",
        nanoseconds: 1,
    },
    Tick {
        name: "us",
        nanoseconds: 1_000,
    },
    Tick {
        name: "ms",
        nanoseconds: 1_000_000,
    },
    Tick {
        name: "s",
        nanoseconds: 1_000_000_000,
    },
];

impl Tick {
    pub(crate) const MILLISECOND: Self = TICKS[2];

    pub(crate) fn parse(text: &str) -> PyResult<Self> {
        let found = TICKS.into_iter().find(|tick| tick.name == text);
        found.ok_or_else(|| invalid("tick", format!("{text:?}"), "ns, us, ms or s"))
    }
}

/// The times of a batch.
pub(crate) enum Times {
    All(u64),
    Each(Vec<u64>),
}

impl Times {
    pub(crate) fn read(object: &Bound<'_, PyAny>, tick: Option<Tick>) -> PyResult<Self> {
        if object.is_instance_of::<PyInt>() {
            return tick_of(object).map(Self::All);
        }
        let mut ticks = Vec::new();
        if let Some(arrays) = arrow::import(object)? {
            for array in &arrays {
                push_ticks(&Column::of_arrow(array)?, tick, &mut ticks)?;
            }
            return Ok(Self::Each(ticks));
        }
        let list = if numpy::is_array(object) {
            match numpy::import(object)? {
                Array::Column(column) => {
                    push_ticks(&column, tick, &mut ticks)?;
                    return Ok(Self::Each(ticks));
                }
                Array::Objects(list) => list,
            }
        } else {
            object.clone()
        };
        let Ok(times) = list.try_iter() else {
            return Err(wrong_type("times", object.get_type().name()?, ALLOWED));
        };
        for time in times {
            ticks.push(tick_of(&time?)?);
        }
        Ok(Self::Each(ticks))
    }
}

fn tick_of(time: &Bound<'_, PyAny>) -> PyResult<u64> {
    if !time.is_instance_of::<PyInt>() && !time.hasattr("__index__")? {
        return Err(wrong_type("time", time.get_type().name()?, ALLOWED));
    }
    time.extract()
        .map_err(|_| invalid("time", time, "0 to 2^64 - 1"))
}

/// The ticks of a column.
fn push_ticks(column: &Column, tick: Option<Tick>, ticks: &mut Vec<u64>) -> PyResult<()> {
    let first = ticks.len();
    if let Some(row) = column.first_null() {
        return Err(invalid(
            "times",
            format!("null at row {}", first + row),
            "no nulls",
        ));
    }
    let Some((numbers, signed, unit)) = column.numbers() else {
        return Err(wrong_type("times", "bytes or strings", ALLOWED));
    };
    if signed && let Some(row) = numbers.iter().position(|time| (*time as i64) < 0) {
        let value = format!("{} at row {}", numbers[row] as i64, first + row);
        return Err(invalid("times", value, "0 or more, and no NaT"));
    }
    let Some(unit) = unit else {
        ticks.extend_from_slice(numbers);
        return Ok(());
    };
    let Some(Tick { nanoseconds, .. }) = tick else {
        let allowed = "integers, or a filter that knows its tick: window=\"10m\", or tick=\"s\"";
        return Err(invalid("times", "values with a unit", allowed));
    };
    if unit <= nanoseconds {
        let units = nanoseconds / unit;
        ticks.extend(numbers.iter().map(|time| time / units));
    } else {
        let factor = unit / nanoseconds;
        for (row, time) in numbers.iter().enumerate() {
            let Some(time) = time.checked_mul(factor) else {
                let value = format!("{time} at row {}", first + row);
                return Err(invalid("times", value, "fewer than 2^64 ticks"));
            };
            ticks.push(time);
        }
    }
    Ok(())
}
