//! Adapters in specifications: the trait that the specification of an adapter implements, and the
//! macro that generates [`AdapterSpec`](super::AdapterSpec) from the list of all adapters.

use std::fmt;

use super::layers::Layers;
use crate::error::{BuildError, SpecError};
use crate::filters::Filter;
use crate::options::Options;
use crate::theory::RateModel;
use crate::window::Window;

/// The specification of an adapter: its own parameters. What it adapts, `inner`, holds the memory
/// and the seed of the whole.
pub(crate) trait AdapterKind: Copy + PartialEq + fmt::Debug {
    /// The name in text.
    const NAME: &'static str;

    /// Whether a duplicate renews its key if it does so in the filter under the adapter.
    const RENEWS_KEYS: bool;

    /// Takes the options of the adapter from `options`.
    fn parse(options: &mut Options) -> Result<Self, SpecError>;

    /// All options that [`parse`](Self::parse) takes, as text.
    fn options(&self) -> Vec<(&'static str, String)>;

    /// Builds the adapter and what is under it.
    fn build(&self, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError>;

    /// The mean number of cache lines that a fresh key touches at most.
    fn cache_lines(&self, inner: Layers<'_>) -> f64;

    /// The formula for the error rates on uniform streams, if there is one.
    fn rate_model(&self, inner: Layers<'_>) -> Option<RateModel>;

    /// The false positive rate that the filter never exceeds on any stream, if one below 1 exists.
    fn fpr_limit(&self, inner: Layers<'_>) -> Option<f64>;

    /// The most memory of the whole, in bytes.
    fn most_memory(&self, inner: Layers<'_>) -> u64;

    /// How long a key is remembered, if what is under the adapter has a window.
    fn window(&self, inner: Layers<'_>) -> Option<Window> {
        inner.window()
    }

    /// The same adapter for a stream `scale` times shorter, in as much less memory.
    fn scaled(self, _scale: f64) -> Self {
        self
    }
}

/// Generates [`AdapterSpec`](super::AdapterSpec) from a list of specifications: the enum, a
/// conversion from each specification, and methods that forward to it.
macro_rules! adapters {
    ($($(#[$doc:meta])* $adapter:ident($spec:ty);)*) => {
        /// An adapter around a filter, by its name and options.
        ///
        /// # Examples
        /// ```
        /// use echoless::spec::AdapterSpec;
        /// let adapter: AdapterSpec = "horizontal:slices=8".parse()?;
        /// assert_eq!(adapter.to_string(), "horizontal:slices=8,failed=duplicate");
        /// # Ok::<(), echoless::SpecError>(())
        /// ```
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[non_exhaustive]
        pub enum AdapterSpec {
            $($(#[$doc])* $adapter($spec),)*
        }

        $(impl From<$spec> for AdapterSpec {
            fn from(spec: $spec) -> Self {
                Self::$adapter(spec)
            }
        })*

        impl AdapterSpec {
            /// The names of all adapters, in the order of the list.
            pub fn names() -> impl Iterator<Item = &'static str> {
                [$(<$spec as AdapterKind>::NAME),*].into_iter()
            }

            /// Parses the adapter `name`; takes its options from `options`.
            pub(crate) fn parse(
                name: &str,
                options: &mut Options,
            ) -> Result<Self, SpecError> {
                $(if name == <$spec as AdapterKind>::NAME {
                    return <$spec as AdapterKind>::parse(options).map(Self::$adapter);
                })*
                let names: Vec<&str> = Self::names().collect();
                let allowed = format!("{} before the filter", one_of(&names));
                Err(SpecError::new("adapter", name, allowed))
            }

            /// The name of the adapter.
            #[must_use]
            pub const fn name(&self) -> &'static str {
                match self {
                    $(Self::$adapter(_) => <$spec as AdapterKind>::NAME,)*
                }
            }

            /// Whether a duplicate renews its key if it does so in the filter under the adapter.
            pub(crate) const fn renews_keys(&self) -> bool {
                match self {
                    $(Self::$adapter(_) => <$spec as AdapterKind>::RENEWS_KEYS,)*
                }
            }

            /// All options of this adapter, as text, defaults included.
            pub(crate) fn options(&self) -> Vec<(&'static str, String)> {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::options(spec),)*
                }
            }

            /// Builds the adapter and what is under it.
            pub(crate) fn build(&self, inner: Layers<'_>) -> Result<Box<dyn Filter>, BuildError> {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::build(spec, inner),)*
                }
            }

            /// The mean number of cache lines that a fresh key touches at most.
            pub(crate) fn cache_lines(&self, inner: Layers<'_>) -> f64 {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::cache_lines(spec, inner),)*
                }
            }

            /// The formula for the error rates on uniform streams, if there is one.
            pub(crate) fn rate_model(&self, inner: Layers<'_>) -> Option<RateModel> {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::rate_model(spec, inner),)*
                }
            }

            /// The false positive rate that is never exceeded, if there is one below 1.
            pub(crate) fn fpr_limit(&self, inner: Layers<'_>) -> Option<f64> {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::fpr_limit(spec, inner),)*
                }
            }

            /// The most memory of the whole, in bytes.
            pub(crate) fn most_memory(&self, inner: Layers<'_>) -> u64 {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::most_memory(spec, inner),)*
                }
            }

            /// How long a key is remembered, if the filter has a window.
            pub(crate) fn window(&self, inner: Layers<'_>) -> Option<Window> {
                match self {
                    $(Self::$adapter(spec) => AdapterKind::window(spec, inner),)*
                }
            }

            /// The same adapter for a stream `scale` times shorter.
            pub(crate) fn scaled(self, scale: f64) -> Self {
                match self {
                    $(Self::$adapter(spec) => Self::$adapter(AdapterKind::scaled(spec, scale)),)*
                }
            }
        }
    };
}
pub(super) use adapters;
