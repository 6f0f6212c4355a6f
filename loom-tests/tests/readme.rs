//! The table of the models in `README.md` is that of their names and docs.

#![cfg(not(loom))]

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// The sources below a folder, in the order of their paths.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            sources(&path, found);
        } else if path.file_name().unwrap() != "readme.rs" {
            found.push(path);
        }
    }
}

/// The rows of a source: the name of each test, and the first paragraph of its docs.
fn rows(source: &str, table: &mut String) {
    let lines: Vec<&str> = source.lines().collect();
    for (index, line) in lines.iter().enumerate() {
        if *line != "#[test]" {
            continue;
        }
        let name = lines[index..]
            .iter()
            .find_map(|line| line.strip_prefix("fn "));
        let name = name.unwrap().split('(').next().unwrap();
        let before = lines[..index].iter().rev();
        let mut docs: Vec<&str> = before
            .map_while(|line| line.strip_prefix("///"))
            .map(str::trim)
            .collect();
        docs.reverse();
        let paragraph = docs.split(|line| line.is_empty()).next().unwrap();
        assert!(!paragraph.is_empty(), "{name} has no docs");
        let text = paragraph.join(" ").replace("[`", "`").replace("`]", "`");
        writeln!(table, "| `{name}` | {text} |").unwrap();
    }
}

/// `UPDATE_PAGES=1` writes it.
#[test]
fn the_table_has_every_model() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&crate_root.join("tests"), &mut files);
    let mut table = String::from("| test | property |\n|---|---|\n");
    for file in &files {
        rows(&fs::read_to_string(file).unwrap(), &mut table);
    }
    assert!(table.lines().count() > 50, "{table}");
    let path = crate_root.join("README.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once("<!-- models -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of models -->\n").unwrap();
    let expected = format!("{before}<!-- models -->\n\n{table}\n<!-- end of models -->\n{after}");
    if std::env::var_os("UPDATE_PAGES").is_some() {
        fs::write(&path, expected).unwrap();
        return;
    }
    assert!(
        page == expected,
        "the table of README.md is not up to date: UPDATE_PAGES=1 writes it"
    );
}
