//! The options of a subcommand, read from its help.

use crate::run::command;

/// An option of a subcommand.
#[derive(Debug, Clone)]
pub(crate) struct Opt {
    /// With its dashes.
    pub(crate) name: String,
    /// What the help calls its value; `None` for a flag.
    pub(crate) value: Option<String>,
    /// Whether the value may be left out.
    optional: bool,
}

impl Opt {
    /// The arguments that give the option this value; `None` for a flag, which has none.
    pub(crate) fn with(&self, value: &str) -> Option<Vec<String>> {
        self.value.as_ref()?;
        Some(vec![format!("{}={value}", self.name)])
    }

    /// Whether it may be given without a value.
    pub(crate) fn is_flag(&self) -> bool {
        self.value.is_none() || self.optional
    }
}

/// The options of a subcommand, but for help and version, and for runs without an end.
pub(crate) fn options_of(subcommand: &str) -> Vec<Opt> {
    let output = command(&[subcommand, "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let options: Vec<Opt> = help.lines().filter_map(option).collect();
    assert!(options.len() > 5, "{subcommand}: {options:?}");
    options
}

/// The option that a line of the help introduces: `  -k, --key <FIELDS>` or `      --tag[=<NAME>]`.
fn option(line: &str) -> Option<Opt> {
    let text = line.trim_start();
    let indent = line.len() - text.len();
    let long = text.split_once(", ").filter(|(short, _)| short.len() == 2);
    let text = long.map_or(text, |(_, long)| long);
    if !(2..=8).contains(&indent) || !text.starts_with("--") {
        return None;
    }
    let (name, value) = match text.split_once(['[', ' ']) {
        None => (text, None),
        Some((name, rest)) => {
            let value = rest.trim_start_matches('=').trim_start_matches('<');
            (name, value.split_once('>').map(|(value, _)| value))
        }
    };
    // A run with the last one has no end.
    let left_out = ["--help", "--version", "--follow"];
    (!left_out.contains(&name)).then(|| Opt {
        name: name.into(),
        value: value.map(str::to_owned),
        optional: text.contains("[="),
    })
}
