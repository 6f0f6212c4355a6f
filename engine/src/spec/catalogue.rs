//! The catalogue: every filter and adapter that a specification can name, with its options, their
//! defaults and the values that they accept.

use crate::filters::Form;
use crate::filters::adapters::AdapterRow;
use crate::filters::row::{FilterRow, Named};
use crate::options::OptionInfo;

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
