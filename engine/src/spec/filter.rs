//! The specification of any filter: its kind and form, memory, seed and tracked fraction.

use crate::filters::Form;
use crate::filters::adapters::AdapterChain;
use crate::filters::adapters::tracked::TrackedFraction;
use crate::filters::row::{FilterRow, Named};
use crate::isa::Kernel;

/// Everything that determines the verdicts of a filter: equal specifications and streams give equal
/// verdicts.
///
/// The text form is `name:key=value,key=value`. Besides its own options every filter has
///
/// | option | value | default |
/// |---|---|---|
/// | `memory` | a size in bytes such as `64MiB`; needed to build the filter | none |
/// | `form` | `scattered` or `line` | `scattered` |
/// | `seed` | the seed of the random choices | 0 |
/// | `tracked` | the fraction of the keys that the filter tracks, above 0 and at most 1 | 1 |
///
/// Adapters stand before the filter, outermost first, each followed by `/`:
/// `horizontal:slices=8/clocked:window=600,memory=1MiB`. Memory, seed and tracked fraction are given
/// with the filter and are those of the whole. Adapters, and filters other than those in lines, are
/// [registered](crate::extend) by a crate of their own, such as `echoless-papers`.
///
/// The default filter, a [`FingerprintSpec`](crate::FingerprintSpec), is accepted too, in the same
/// places and with its memory: `fingerprint:fpr=1e-8,memory=64MiB`. Without `form=line`, `rowlru`,
/// `qqht` and `qqhtd` are small fingerprints of a paper, with false positives in percent, which are
/// registered, too.
///
/// In a file (serde) a specification is a table of the same keys, `filter`, and `adapters` (one
/// text) if there are any, or the text form as one string. In TOML:
///
/// ```toml
/// filter = "clocked"
/// window = 600
/// memory = "1MiB"
/// ```
///
/// Each value is checked when a text is parsed. What several values or the machine decide, such as
/// whether the memory suffices, is checked when the filter is built.
///
/// # Examples
/// ```
/// use echoless::{FilterSpec, KeyHasher, Verdict};
/// let key = KeyHasher::seeded(0).hash_u64(17);
/// let spec: FilterSpec = "dense:replacement=lru,bits=32,memory=1MiB,seed=7".parse()?;
/// assert_eq!(spec.to_string(), "dense:replacement=lru,bits=32,memory=1MiB,seed=7");
/// let mut filter = spec.build()?;
/// assert_eq!(filter.observe_one(key), Verdict::Fresh);
/// assert_eq!(filter.observe_one(key), Verdict::Duplicate);
///
/// let error = "dense:bits=24,memory=1MiB".parse::<FilterSpec>().unwrap_err();
/// assert_eq!(error.to_string(), "invalid bits=24: expected 16, 32 or 64");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct FilterSpec {
    /// The adapters around the filter, outermost first. The memory, the seed and the tracked
    /// fraction are those of the whole.
    pub(crate) adapters: AdapterChain,
    /// The filter under the adapters, by its name and options.
    pub(crate) kind: Named,
    /// Scattered or line. Another form does not change the options; see [`form`](Self::form()).
    pub form: Form,
    /// The memory in bytes; needed to build the filter. The line form rounds it down to whole lines
    /// of 64 bytes.
    pub memory: Option<u64>,
    /// The seed of the random choices.
    pub seed: u64,
    /// The fraction of the keys that the filter tracks.
    pub tracked: TrackedFraction,
    /// The kernel to run on; the best one if `None`. It changes no verdict and is not part of the
    /// text. Scattered forms have no kernels.
    pub kernel: Option<Kernel>,
}

impl FilterSpec {
    /// The names of all filters, in the order of the [catalogue](crate::spec::catalogue()).
    pub fn names() -> impl Iterator<Item = &'static str> {
        FilterRow::all().map(|row| row.head.name)
    }

    /// The name of the filter, without its adapters.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.kind.name()
    }

    /// Sets the form. The options keep their values, those that were not given included: they are
    /// the defaults of the form before. Where these are not accepted in the new form, building is
    /// an error, and so is parsing the text. `form=line` in the text selects the defaults of lines.
    #[must_use]
    pub const fn form(mut self, form: Form) -> Self {
        self.form = form;
        self
    }

    /// Sets the memory, in bytes.
    #[must_use]
    pub const fn memory(mut self, bytes: u64) -> Self {
        self.memory = Some(bytes);
        self
    }

    /// Sets the seed of the random choices.
    #[must_use]
    pub const fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Tracks this fraction of the keys.
    #[must_use]
    pub const fn tracked(mut self, fraction: TrackedFraction) -> Self {
        self.tracked = fraction;
        self
    }

    /// Forces a kernel, for tests and benchmarks.
    #[must_use]
    pub const fn kernel(mut self, kernel: Kernel) -> Self {
        self.kernel = Some(kernel);
        self
    }
}
