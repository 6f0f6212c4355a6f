//! The Python package of echoless, over the crate that all foreign callers share.
//!
//! A call reads its keys into pieces of memory or hashes ([`keys`], [`columns`]), which needs the
//! interpreter, releases it, and judges block by block ([`blocks`]); the verdicts become an array
//! ([`output`]). Only [`arrow`] has unsafe code: it takes over the structs of the interface of
//! Arrow. [`numbers`] says which numbers are equal.

mod arrow;
mod blocks;
mod columns;
mod errors;
mod exact;
mod filter;
mod keys;
mod lab;
mod numbers;
mod numpy;
mod object;
mod options;
mod ordered;
mod output;
mod pandas;
mod shared;
mod times;

use pyo3::prelude::*;

/// The compiled part of the package.
///
/// Nothing relies on the global interpreter lock: a filter has a lock of its own, which no call
/// waits for.
#[pymodule(gil_used = false)]
fn _echoless(module: &Bound<'_, PyModule>) -> PyResult<()> {
    echoless_papers::register();
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<filter::Filter>()?;
    module.add_class::<exact::ExactFilter>()?;
    module.add_class::<shared::SharedFilter>()?;
    module.add_class::<ordered::OrderedFilter>()?;
    module.add_class::<ordered::OrderedThread>()?;
    module.add_function(wrap_pyfunction!(lab::plan, module)?)?;
    module.add_function(wrap_pyfunction!(lab::evaluate, module)?)?;
    Ok(())
}
