//! The catalogue: every filter and adapter that a specification can name, with its options, their
//! defaults and the values that they accept. It is what the parsers do, and not a list beside them.

use crate::filters::adapters::AdapterSpec;
use crate::filters::{FilterKind, Form};
use crate::options::{OptionInfo, Options};

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

/// All filters, in the order of [`FilterKind::names`], each in the forms that it has, and all
/// adapters.
///
/// # Examples
/// ```
/// use echoless::spec::{Form, catalogue};
/// let bloom = &catalogue()[0];
/// assert_eq!((bloom.name, bloom.form), ("bloom", Some(Form::Scattered)));
/// let k = &bloom.options[0];
/// assert_eq!((k.name, k.default.as_deref()), ("k", Some("4")));
/// assert_eq!(k.allowed, "a whole number from 1 to 64");
/// ```
#[must_use]
pub fn catalogue() -> Vec<CatalogueEntry> {
    let in_form = |name: &'static str, form: Form| {
        let has_form = match form {
            Form::Scattered => FilterKind::default_form_of(name) == Form::Scattered,
            Form::Line => FilterKind::names_of(form, FilterKind::has_line_form).contains(&name),
        };
        has_form.then(|| CatalogueEntry {
            name,
            form: Some(form),
            options: Options::describe(|options| {
                FilterKind::parse(name, form, options).map(|kind| kind.options())
            }),
        })
    };
    let filters = FilterKind::names().flat_map(|name| {
        Form::ALL
            .iter()
            .filter_map(move |form| in_form(name, *form))
    });
    let adapters = AdapterSpec::names().map(|name| CatalogueEntry {
        name,
        form: None,
        options: Options::describe(|options| {
            AdapterSpec::parse(name, options).map(|adapter| adapter.options())
        }),
    });
    filters.chain(adapters).collect()
}
