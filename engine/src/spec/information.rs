//! What is known of filters without building them: the properties that follow from a specification,
//! and the catalogue, every filter and adapter that a specification can name, with its options, their
//! defaults and the values that they accept.

use super::filter::FilterSpec;
use crate::filters::adapters::{AdapterChain, AdapterRow};
use crate::filters::row::{FilterRow, Named};
use crate::filters::{Facts, Form};
use crate::options::OptionInfo;
use crate::report::MissAge;

impl FilterSpec {
    /// What is known of the filter.
    #[must_use]
    pub fn facts(&self) -> Facts {
        let facts = self.layers(self.memory.unwrap_or(0)).facts();
        Facts {
            rate_model: facts.rate_model.filter(|_| self.memory.is_some()),
            fpr_limit: facts.fpr_limit.filter(|_| self.memory.is_some()),
            ..facts
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
        let unit = self.facts().memory_unit;
        let units = (self.memory? / unit) as f64;
        let mut small = self.memory(unit);
        if self.has_partitions() {
            // Slices are ranges of the lines, of which the small filter has too few.
            self.needed_layers().ok()?.partition_plan().ok()?;
            small.adapters = AdapterChain::default();
        }
        let small = small.build().ok()?;
        let MissAge { age, since, least } = small.report().miss_age?;
        Some(MissAge::new(age * units, since).least(least * units))
    }

    /// Whether [`build_partitions`](Self::build_partitions) can cut the filter: a filter that has a
    /// line form, in that form, without adapters or in horizontal slices, which are ranges of its
    /// lines themselves.
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
            Some(bytes) if self.has_partitions() => (bytes / self.facts().memory_unit).max(1),
            Some(_) | None => 1,
        }
    }
}

/// A filter in one of its forms, or an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CatalogueEntry {
    /// The name in text.
    pub name: &'static str,
    /// The form of the filter; `None` for an adapter.
    pub form: Option<Form>,
    /// Its own options. Every filter also takes `memory`, `form`, `seed` and `tracked`.
    pub options: Vec<OptionInfo>,
}

/// All filters, in the order of their list, each in the forms that it has, and all
/// adapters.
///
/// # Examples
/// ```
/// use echoless::spec::{Form, catalogue};
/// let dense = catalogue().into_iter().find(|entry| entry.name == "dense").unwrap();
/// assert_eq!(dense.form, Some(Form::Line));
/// let bits = &dense.options[1];
/// assert_eq!((bits.name, bits.default.as_deref()), ("bits", Some("32")));
/// assert_eq!(bits.allowed, "16, 32 or 64");
/// ```
#[must_use]
pub fn catalogue() -> Vec<CatalogueEntry> {
    let in_form = |row: &'static FilterRow, form| {
        let has_form = match form {
            Form::Scattered => row.scattered.is_some(),
            Form::Line => row.lines.is_some(),
        };
        has_form.then(|| CatalogueEntry {
            name: row.head.name,
            form: Some(form),
            options: Named::infos(&row.head, form),
        })
    };
    let forms = |row| Form::ALL.iter().filter_map(move |form| in_form(row, *form));
    let adapters = AdapterRow::all().map(|row| CatalogueEntry {
        name: row.head.name,
        form: None,
        options: Named::infos(&row.head, Form::Scattered),
    });
    FilterRow::all().flat_map(forms).chain(adapters).collect()
}
