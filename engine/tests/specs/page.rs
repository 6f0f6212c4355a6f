//! The page of all filters and options is what the parsers accept.

use std::fmt::Write;

use echoless::spec::{CatalogueEntry, catalogue};

use crate::{PAGE, START, parse};

/// The page as it must be.
fn page() -> String {
    let mut page = format!(
        "# Filters and their options\n\n{START}\n\
         | filter | form | option | default | accepted values |\n|---|---|---|---|---|\n"
    );
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

/// `UPDATE_PAGES=1 cargo test --test specs` writes the page anew.
#[test]
fn the_page_of_filters_is_up_to_date() {
    let expected = page();
    if std::env::var_os("UPDATE_PAGES").is_some() {
        std::fs::write(PAGE, &expected).unwrap();
    }
    let found = std::fs::read_to_string(PAGE).unwrap();
    assert!(found == expected, "{PAGE} is not up to date: see `page.rs`");
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
            parse(&text);
        }
    }
}
