//! Properties of a filter that follow from its specification, without building it.

use super::filter::FilterSpec;
use crate::filters::Form;
use crate::filters::adapters::AdapterSpec;
use crate::memory::LINE_BYTES;
use crate::report::MissAge;
use crate::theory::RateModel;
use crate::window::Window;

impl FilterSpec {
    /// The mean number of cache lines that a fresh key touches at most. Keys that are not tracked
    /// touch none and do not count in the mean.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let lines = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.cache_lines());
    /// assert_eq!(lines("rlbsbf:k=2,memory=1MiB"), Ok(4.0));
    /// assert_eq!(lines("rlbsbf:k=2,form=line,memory=1MiB"), Ok(1.0));
    /// ```
    #[must_use]
    pub fn cache_lines(&self) -> f64 {
        self.layers(self.memory.unwrap_or(0)).cache_lines()
    }

    /// The formula for the error rates on a uniform stream of the tracked keys, if there is one and
    /// the memory is set.
    #[must_use]
    pub fn rate_model(&self) -> Option<RateModel> {
        self.layers(self.memory?).rate_model()
    }

    /// The false positive rate that the filter never exceeds on any stream; `None` if there is no
    /// such limit below 1, or the memory is not set.
    ///
    /// For fingerprints it is the number of slots searched times the probability that a fingerprint
    /// equals that of another key, and for a buffer that guesses, the rate of its guesses. A
    /// simulation of a million records cannot measure a rate of one in a billion, so a planner
    /// needs this limit. In the line form it accounts for the hash bits that select the line
    /// ([`FingerprintGeometry::full_fpr`](crate::FingerprintGeometry::full_fpr)). Exact buffers
    /// confuse only keys of equal hashes, which do not count here.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let limit = |text: &str| text.parse::<FilterSpec>().unwrap().fpr_limit();
    /// let narrow = limit("qqht:slots=16,bits=32,memory=1MiB");
    /// assert!((narrow.unwrap() - 3.7e-9).abs() < 1e-10);
    /// // 2^14 lines leave 50 bits of a hash, for slots of any width.
    /// let wide = limit("qqht:slots=8,bits=64,form=line,memory=1MiB");
    /// assert_eq!(wide, Some(8.0 / 2_f64.powi(50)));
    /// assert_eq!(limit("lru:memory=1MiB"), Some(0.0));
    /// assert_eq!(limit("rlbsbf:memory=1MiB"), None);
    /// ```
    #[must_use]
    pub fn fpr_limit(&self) -> Option<f64> {
        self.layers(self.memory?).fpr_limit()
    }

    /// The most memory that the filter can have, in bytes, on a machine that has as much.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let most = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.most_memory());
    /// assert_eq!(most("rowlru:form=line"), Ok(256 << 30));
    /// assert_eq!(most("lru"), Ok(24 * u64::from(u32::MAX)));
    /// ```
    #[must_use]
    pub fn most_memory(&self) -> u64 {
        self.layers(0).most_memory()
    }

    /// How long the filter remembers a key, if it has a window in ticks and its parameters are
    /// valid. ([`bdbf`](crate::spec::DecayingSpec) counts its window in records by itself.)
    ///
    /// # Examples
    /// ```
    /// use echoless::{FilterSpec, Window};
    /// let window = |text: &str| text.parse::<FilterSpec>().unwrap().window();
    /// assert_eq!(window("clocked:window=1000"), Some(Window::new(1000, 200)));
    /// assert_eq!(window("stamped:window=1000"), Some(Window::new(1000, 1)));
    /// assert_eq!(window("rowlru"), None);
    /// ```
    #[must_use]
    pub fn window(&self) -> Option<Window> {
        self.layers(0).window()
    }

    /// Whether a duplicate renews its key, in a filter with a [`window`](Self::window): the window
    /// then counts from when the key was last seen, else from when it was recorded.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let renews = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.renews_keys());
    /// assert_eq!(renews("clocked:refresh=true"), Ok(true));
    /// assert_eq!(renews("clocked:refresh=false"), Ok(false));
    /// // A duplicate changes no node of a tree.
    /// assert_eq!(renews("tree:levels=2/clocked:refresh=true"), Ok(false));
    /// ```
    #[must_use]
    pub fn renews_keys(&self) -> bool {
        self.kind.renews_keys() && self.adapters.iter().all(AdapterSpec::renews_keys)
    }

    /// The unit of the memory of a line form: a line, or a page of lines in a dense filter, that
    /// holds all that a key reads and writes. Memory beyond whole units is not used. 1 for other
    /// forms.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let unit = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.memory_unit());
    /// assert_eq!(unit("clocked:window=1000"), Ok(64));
    /// assert_eq!(unit("clocked:window=1000,dense=true"), Ok(4096));
    /// assert_eq!(unit("rowlru"), Ok(1));
    /// ```
    #[must_use]
    pub fn memory_unit(&self) -> u64 {
        match self.form {
            Form::Line => self.kind.bucket_lines() * LINE_BYTES,
            Form::Scattered => 1,
        }
    }

    /// The age at which the filter misses 1 duplicate in 1000, as it will be in its
    /// [report](crate::Report). `None` if there is no such age, the memory is not set, or the
    /// filter cannot be built.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let spec: FilterSpec = "clocked:window=1000,memory=1MiB".parse()?;
    /// let age = spec.miss_age().unwrap();
    /// assert!((age.age / spec.build()?.report().miss_age.unwrap().age - 1.0).abs() < 1e-9);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn miss_age(&self) -> Option<MissAge> {
        // It is proportional to the number of lines, so that a small filter has to be built only.
        let unit = self.memory_unit();
        let units = (self.memory? / unit) as f64;
        let small = self.memory(unit).build().ok()?;
        let MissAge { age, since, least } = small.report().miss_age?;
        Some(MissAge::new(age * units, since).least(least * units))
    }

    /// Whether the error rates settle on an endless stream of which some records are always fresh.
    /// The rates of a filter that does not settle drift until they add up to 1: its verdicts are
    /// those of a coin, and it is for streams of known length.
    ///
    /// Bloom filters fill up, and so do BSBFSD (paper 000), although it clears bits, and ageing
    /// filters with one hash; RSBF with `as=tabled` inserts ever fewer keys; FP-SBF with
    /// `refill=xor` (paper 003) loses its fingerprints.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let settles = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.settles());
    /// assert_eq!(settles("rlbsbf:k=2"), Ok(true));
    /// assert_eq!(settles("bsbfsd:k=2"), Ok(false));
    /// assert_eq!(settles("bloom:k=2"), Ok(false));
    /// // It drops its oldest filter.
    /// assert_eq!(settles("growing/bloom:k=2"), Ok(true));
    /// ```
    #[must_use]
    pub fn settles(&self) -> bool {
        let drops_oldest = |adapter: &AdapterSpec| matches!(adapter, AdapterSpec::Growing(_));
        self.kind.settles() || self.adapters.iter().any(drops_oldest)
    }

    /// Whether the number of rows is a power of two: then a filter of half the memory has half the
    /// rows, but one of a little less memory may also have half the rows, or as many.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// assert!("cuckoo".parse::<FilterSpec>()?.has_power_of_two_rows());
    /// assert!(!"qht".parse::<FilterSpec>()?.has_power_of_two_rows());
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    #[must_use]
    pub const fn has_power_of_two_rows(&self) -> bool {
        self.kind.has_power_of_two_rows()
    }

    /// The same filter for a stream `scale` times shorter, in as much less memory: what counts
    /// records or bytes shrinks. The memory itself is left as it is.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let spec: FilterSpec = "growing:step=1MiB/bloom:k=4,memory=8MiB".parse()?;
    /// let text = "growing:fpr=0.01,threshold=density,step=64KiB/bloom:k=4,memory=8MiB";
    /// assert_eq!(spec.scaled(16.0).to_string(), text);
    /// # Ok::<(), echoless::SpecError>(())
    /// ```
    #[must_use]
    pub fn scaled(mut self, scale: f64) -> Self {
        self.kind = self.kind.scaled(scale);
        self.adapters = self.adapters.scaled(scale);
        self
    }

    /// Whether [`build_partitions`](Self::build_partitions) can cut the filter: a line form without
    /// adapters, or in horizontal slices, which are ranges of its lines themselves.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let has = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.has_partitions());
    /// assert_eq!(has("horizontal:slices=8/rowlru:form=line"), Ok(true));
    /// assert_eq!(has("horizontal:slices=8/rowlru"), Ok(false));
    /// ```
    #[must_use]
    pub fn has_partitions(&self) -> bool {
        self.layers(0).has_partitions()
    }

    /// The most partitions that the filter can be cut into: one for each line, or for each page of
    /// a dense filter; 1 if it [has none](Self::has_partitions) or the memory is not set.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// let most = |text: &str| text.parse::<FilterSpec>().map(|spec| spec.most_partitions());
    /// assert_eq!(most("rowlru:form=line,memory=1MiB"), Ok(1 << 14));
    /// assert_eq!(most("dense:memory=1MiB"), Ok(1 << 8));
    /// assert_eq!(most("rowlru:memory=1MiB"), Ok(1));
    /// ```
    #[must_use]
    pub fn most_partitions(&self) -> u64 {
        match self.memory {
            Some(bytes) if self.has_partitions() => {
                (bytes / LINE_BYTES / self.kind.bucket_lines()).max(1)
            }
            Some(_) | None => 1,
        }
    }
}
