//! What a machine itself makes of packets that are captured on several of its interfaces, or on its
//! loopback interface: the copies that need no network.

use std::fs;
use std::path::Path;

/// Where Linux has a folder for each interface, with a link to each that it is made of.
const INTERFACES: &str = "/sys/class/net";

/// The hardware type of loopback: `ARPHRD_LOOPBACK`.
const LOOPBACK: &str = "772";

/// The names of captured interfaces, as pairs of interfaces have numbers.
pub(super) fn names_line(names: &[String]) -> String {
    let numbered = names.iter().enumerate();
    let numbered: Vec<_> = numbered
        .map(|(number, name)| format!("0.{number} {name}"))
        .collect();
    format!("interfaces: {}", numbered.join(", "))
}

/// A line for each of these captured interfaces whose packets come twice.
pub(super) fn lines(names: &[String]) -> Vec<String> {
    lines_below(Path::new(INTERFACES), names)
}

fn lines_below(root: &Path, names: &[String]) -> Vec<String> {
    let mut lines = Vec::new();
    for name in names {
        let folder = root.join(name);
        let kind = fs::read_to_string(folder.join("type"));
        if kind.is_ok_and(|kind| kind.trim() == LOOPBACK) {
            lines.push(format!(
                "{name} has each packet twice, going out and coming in: capture what comes in \
                 (--filter inbound)"
            ));
        }
        let parts = names.iter();
        let parts: Vec<_> = parts
            .filter(|part| folder.join(format!("lower_{part}")).exists())
            .map(String::as_str)
            .collect();
        if !parts.is_empty() {
            let parts = parts.join(", ");
            lines.push(format!(
                "{name} is made of {parts} by this machine, so that each has packets of the other: \
                 capture either"
            ));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn interfaces_are_named_with_what_they_are_made_of() {
        let root = tempfile::tempdir().unwrap();
        for (name, kind, lower) in [
            ("lo", "772\n", &[][..]),
            ("eth0", "1\n", &[]),
            ("eth1", "1\n", &[]),
            ("bond0", "1\n", &["eth0", "eth1"]),
            ("br0", "1\n", &["bond0"]),
        ] {
            let folder = root.path().join(name);
            fs::create_dir(&folder).unwrap();
            fs::write(folder.join("type"), kind).unwrap();
            for part in lower {
                symlink(root.path().join(part), folder.join(format!("lower_{part}"))).unwrap();
            }
        }
        let told = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
            lines_below(root.path(), &names)
        };
        assert!(told(&["eth0", "eth1", "gone"]).is_empty());
        assert!(told(&["eth0", "br0"]).is_empty());
        let lines = told(&["eth0", "bond0", "br0", "lo"]);
        assert_eq!(lines.len(), 3);
        assert!(lines[0].starts_with("bond0 is made of eth0 by this machine"));
        assert!(lines[1].starts_with("br0 is made of bond0 by this machine"));
        assert!(lines[2].starts_with("lo has each packet twice"));
    }
}
