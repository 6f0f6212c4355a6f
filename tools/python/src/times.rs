//! When keys came: ticks, from numbers or from times with a unit.

use arrow_schema::DataType;
use echoless_stream::Unit;
use pyo3::prelude::*;
use pyo3::types::PyInt;

use crate::columns::Column;
use crate::errors::{invalid, shown, wrong_type};
use crate::numbers::Meaning;
use crate::numpy::Array;
use crate::{arrow, numpy, pandas};

const ALLOWED: &str = "an int for all keys, or a list of them, a numpy array or Arrow column of \
     integers or times, one for each key";

/// Parses the length of a tick.
pub(crate) fn parse_tick(text: &str) -> PyResult<Unit> {
    let ticks = Unit::ALL.iter().take_while(|tick| tick.name != "m");
    let found = ticks.copied().find(|tick| tick.name == text);
    found.ok_or_else(|| invalid("tick", format!("{text:?}"), "ns, us, ms or s"))
}

/// The times of a batch.
pub(crate) enum Times {
    All(u64),
    Each(Vec<u64>),
}

impl Times {
    /// Reads the times of `count` keys, if there are any.
    pub(crate) fn read(
        object: Option<&Bound<'_, PyAny>>,
        tick: Option<Unit>,
        count: usize,
    ) -> PyResult<Option<Self>> {
        let read = |object| Self::read_each(object, tick, count);
        object.map(read).transpose()
    }

    fn read_each(object: &Bound<'_, PyAny>, tick: Option<Unit>, count: usize) -> PyResult<Self> {
        if object.is_instance_of::<PyInt>() {
            return tick_of(object).map(Self::All);
        }
        let mut ticks = Vec::new();
        let mut values = pandas::values(object)?;
        if numpy::is_array(&values) {
            match numpy::import(&values)? {
                Array::Column(column) => {
                    push_ticks(&column, tick, &mut ticks)?;
                    return Ok(Self::Each(ticks));
                }
                Array::Objects(list) => values = list,
            }
        } else if let Some(arrays) = arrow::import(&values)? {
            for array in &arrays {
                if let DataType::Struct(_) = array.data_type() {
                    return Err(wrong_type("times", "rows of several fields", ALLOWED));
                }
                push_ticks(&Column::of_arrow(array)?, tick, &mut ticks)?;
            }
            return Ok(Self::Each(ticks));
        }
        let Ok(times) = values.try_iter() else {
            return Err(wrong_type("times", object.get_type().name()?, ALLOWED));
        };
        for time in times {
            if ticks.len() == count {
                let value = format!("more than {count}");
                let allowed = format!("{count}, one for each key");
                return Err(invalid("number of ticks", value, allowed));
            }
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
        .map_err(|_| invalid("time", shown(time), "0 to 2^64 - 1"))
}

/// The ticks of a column.
fn push_ticks(column: &Column, tick: Option<Unit>, ticks: &mut Vec<u64>) -> PyResult<()> {
    let first = ticks.len();
    if let Some(row) = column.first_null() {
        return Err(invalid(
            "times",
            format!("null at row {}", first + row),
            "no nulls, and no NaT",
        ));
    }
    let Some((numbers, meaning)) = column.numbers() else {
        return Err(wrong_type("times", "bytes or strings", ALLOWED));
    };
    if meaning != Meaning::Unsigned
        && let Some(row) = numbers.iter().position(|time| (*time as i64) < 0)
    {
        let value = format!("{} at row {}", numbers[row] as i64, first + row);
        return Err(invalid("times", value, "0 or more"));
    }
    let Some(unit) = meaning.unit() else {
        ticks.extend_from_slice(numbers);
        return Ok(());
    };
    let Some(Unit { nanoseconds, .. }) = tick else {
        let allowed = "integers, or a filter that knows its tick: window=\"10m\", or tick=\"s\"";
        return Err(invalid("times", "values with a unit", allowed));
    };
    if nanoseconds % unit == 0 {
        let units = nanoseconds / unit;
        ticks.extend(numbers.iter().map(|time| time / units));
        return Ok(());
    }
    if unit % nanoseconds == 0 {
        let factor = unit / nanoseconds;
        let passed = numbers.iter().map_while(|time| time.checked_mul(factor));
        ticks.extend(passed);
    }
    // Those that are left: units such as that of `M8[400us]` are no part of a tick.
    for (row, time) in numbers.iter().enumerate().skip(ticks.len() - first) {
        let passed = u128::from(*time) * u128::from(unit) / u128::from(nanoseconds);
        let Ok(passed) = u64::try_from(passed) else {
            let value = format!("{time} at row {}", first + row);
            return Err(invalid("times", value, "fewer than 2^64 ticks"));
        };
        ticks.push(passed);
    }
    Ok(())
}
