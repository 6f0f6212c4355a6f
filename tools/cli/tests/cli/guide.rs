//! The guide and the page on packets: their tables of contents, links, options and examples.

use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::echoless;

const SUBCOMMANDS: [&str; 6] = ["dedup", "packets", "gen", "eval", "plan", "state"];

const PAGES: [&str; 2] = ["GUIDE.md", "PACKETS.md"];

fn path(page: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(page)
}

fn text(page: &str) -> String {
    fs::read_to_string(path(page)).unwrap()
}

/// All pages behind each other.
fn guide() -> String {
    PAGES.map(text).concat()
}

/// The lines of a page that are no code.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let fence = line.starts_with("```");
        is_code ^= fence;
        !is_code && !fence
    })
}

/// The blocks of code in a language, each with its lines.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<Vec<&'a str>> {
    let opening = format!("\n```{language}\n");
    let parts = page.split(&*opening).skip(1);
    parts
        .map(|part| part.split_once("\n```").unwrap().0.lines().collect())
        .collect()
}

/// The headings below the title: how deep each is, its text, and the name that links take.
fn headings(page: &str) -> Vec<(usize, &str, String)> {
    prose(page)
        .filter_map(|line| {
            let depth = line.bytes().take_while(|byte| *byte == b'#').count();
            let text = line[depth..].trim();
            let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
            let anchor: String = text.chars().filter(kept).collect();
            let anchor = anchor.to_lowercase().replace(' ', "-");
            (depth > 1).then_some((depth, text, anchor))
        })
        .collect()
}

/// `UPDATE_PAGES=1` writes it.
#[test]
fn the_contents_are_the_headings() {
    for name in PAGES {
        let text = text(name);
        let (before, rest) = text.split_once("<!-- contents -->\n").unwrap();
        let (_, after) = rest.split_once("<!-- end of contents -->\n").unwrap();
        let contents: String = headings(&text)
            .iter()
            .map(|(depth, text, anchor)| {
                format!("{}- [{text}](#{anchor})\n", "  ".repeat(depth - 2))
            })
            .collect();
        let page =
            format!("{before}<!-- contents -->\n\n{contents}\n<!-- end of contents -->\n{after}");
        if env::var_os("UPDATE_PAGES").is_some() {
            fs::write(path(name), &page).unwrap();
            continue;
        }
        assert!(
            page == text,
            "the contents of {name} are not up to date: UPDATE_PAGES=1 writes them"
        );
    }
}

#[test]
fn links_lead_somewhere() {
    for name in PAGES {
        let text = text(name);
        let prose = prose(&text).collect::<Vec<_>>().join(" ");
        for part in prose.split("](").skip(1) {
            let (target, _) = part.split_once(')').unwrap();
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { name } else { file };
            let page = fs::read_to_string(path(file));
            let page = page.unwrap_or_else(|error| panic!("{name}: {target}: {error}"));
            let named = |(_, _, name): &(usize, &str, String)| name == anchor;
            assert!(
                anchor.is_empty() || headings(&page).iter().any(named),
                "{name}: {target}"
            );
        }
    }
}

/// The long options in a text, without their hyphens.
fn options(text: &str) -> BTreeSet<String> {
    let is_name = |letter: char| letter.is_ascii_lowercase() || letter == '-';
    let parts = text.split("--").skip(1);
    let names = parts.map(|part| part.split(|letter| !is_name(letter)).next().unwrap());
    let names = names.filter(|name| name.starts_with(|letter: char| letter.is_ascii_lowercase()));
    names
        .map(|name| name.trim_end_matches('-').to_owned())
        .collect()
}

/// The options that the help of a subcommand lists.
fn listed(subcommand: &str) -> BTreeSet<String> {
    let help = echoless([subcommand, "--help"], b"").text();
    let lines = help.lines().map(str::trim_start);
    let of_option = lines.filter(|line| line.starts_with('-'));
    let mut all = BTreeSet::new();
    for line in of_option {
        let end = line.find(['<', '[']).unwrap_or(line.len());
        all.extend(options(&line[..end]));
    }
    all.remove("help");
    all.remove("version");
    all
}

#[test]
fn every_option_is_in_the_guide() {
    let in_guide = options(&guide());
    for subcommand in SUBCOMMANDS {
        let missing: Vec<_> = listed(subcommand).difference(&in_guide).cloned().collect();
        assert!(missing.is_empty(), "{subcommand}: {missing:?}");
    }
}

#[test]
fn the_examples_have_options_that_exist() {
    let guide = guide();
    let mut checked = 0;
    for block in blocks(&guide, "sh") {
        let text = block.join("\n").replace("\\\n", " ");
        for line in text.lines() {
            for part in line.split("echoless ").skip(1) {
                let (subcommand, rest) = part.split_once(' ').unwrap();
                if subcommand == "state" || !SUBCOMMANDS.contains(&subcommand) {
                    continue;
                }
                let rest = rest.split([';', '|']).next().unwrap();
                let rest = rest.split(" #").next().unwrap();
                let unknown: Vec<_> = options(rest)
                    .difference(&listed(subcommand))
                    .cloned()
                    .collect();
                assert!(unknown.is_empty(), "{line}: {unknown:?}");
                checked += 1;
            }
        }
    }
    assert!(checked >= 40, "{checked}");
}

#[test]
fn sessions_print_what_the_guide_shows() {
    let folder = tempfile::tempdir().unwrap();
    let binary = Path::new(env!("CARGO_BIN_EXE_echoless")).parent().unwrap();
    let search = format!("{}:{}", binary.display(), env::var("PATH").unwrap());
    let guide = guide();
    let mut run = 0;
    for block in blocks(&guide, "console") {
        let text = block.join("\n");
        for session in text.strip_prefix("$ ").unwrap().split("\n$ ") {
            let (line, shown) = session.split_once('\n').unwrap_or((session, ""));
            let output = Command::new("sh")
                .args(["-c", &format!("{{ {line}\n}} 2>&1")])
                .current_dir(folder.path())
                .env("PATH", &search)
                .env_remove("ECHOLESS_OPTS")
                .output()
                .unwrap();
            let printed = String::from_utf8(output.stdout).unwrap();
            assert_eq!(printed.trim_end_matches('\n'), shown, "{line}");
            run += 1;
        }
    }
    assert!(run >= 20, "{run}");
}
