//! The page of all filters and options is what the parsers accept.

use std::fmt::Write;

use echoless::FilterSpec;
use echoless::spec::{CatalogueEntry, catalogue};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/FILTERS.md");

const START: &str = "\
# Filters and their options

`name:key=value,key=value` names a filter; adapters stand before it, each followed by `/`. Every
filter also takes `memory` (a size such as `64MiB`), `form`, `seed` (a whole number) and `tracked`
(a number above 0, up to 1). An option without a default replaces another one, or is computed from
the others. In one of the forms, with some values of other options, or in little memory, fewer
values are accepted; the error then states which.

The default filter is `fingerprint:fpr=1e-8,replacement=lru` with a memory such as `memory=64MiB`:
one of `rowlru`, `qqht` and `qqhtd` in lines, with the narrowest slots that keep the rate of false
positives `fpr`. Without `form=line` these three are the small fingerprints of the paper, which have
false positives in percent. `replacement` is `lru`, `fifo` or `qqhtd`, and `bits` (8, 16, 32 or 64)
may replace `fpr`; its memory is not optional. With `dense=true` a key has two lines of a page, and
with `window=600` it is forgotten after so many ticks (`lru` or `fifo`, 16 to 64 bits).

| filter | form | option | default | accepted values |
|---|---|---|---|---|
";

/// The page as it must be.
fn page() -> String {
    let mut page = START.to_owned();
    for CatalogueEntry {
        name,
        form,
        options,
        ..
    } in catalogue()
    {
        let form = form.map_or("adapter".to_owned(), |form| form.to_string());
        if options.is_empty() {
            writeln!(page, "| `{name}` | {form} | | | |").unwrap();
        }
        for (index, option) in options.iter().enumerate() {
            let start = if index == 0 {
                format!("`{name}` | {form}")
            } else {
                " | ".to_owned()
            };
            let default = match &option.default {
                Some(default) => format!("`{default}`"),
                None => "none".to_owned(),
            };
            let key = option.name;
            writeln!(
                page,
                "| {start} | `{key}` | {default} | {} |",
                option.allowed
            )
            .unwrap();
        }
    }
    page
}

/// `UPDATE_PAGES=1 cargo test -p echoless --test specs` writes the page anew.
#[test]
fn the_page_of_filters_is_up_to_date() {
    let expected = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(PAGE, &expected).unwrap();
    }
    let found = std::fs::read_to_string(PAGE).unwrap();
    assert!(
        found == expected,
        "engine/FILTERS.md is not up to date: see `page.rs`"
    );
}

#[test]
fn every_option_has_its_accepted_values_and_a_default_that_is_one() {
    for entry in catalogue() {
        for option in &entry.options {
            let (name, key) = (entry.name, option.name);
            assert!(!option.allowed.is_empty(), "{name}: {key}");
            let Some(default) = &option.default else {
                continue;
            };
            let text = match entry.form {
                Some(form) => format!("{name}:{key}={default},form={form}"),
                // Only partial answers of failed slices have a least number of cells.
                None if key == "least" => format!("{name}:failed=hybrid,least={default}/bloom"),
                None => format!("{name}:{key}={default}/bloom"),
            };
            let spec: Result<FilterSpec, _> = text.parse();
            assert!(spec.is_ok(), "{text}: {spec:?}");
        }
    }
}
