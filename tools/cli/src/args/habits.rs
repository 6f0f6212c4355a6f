//! Options of similar programs that have other names here, for the messages about options that do
//! not exist. The parser would suggest files of that name.

use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Options of `uniq`, `sort` and `awk`, and of `editcap` and `tcpdump`, and what to use instead.
const HABITS: &str = "\
dedup -f: --skip-fields N is the -f of uniq
dedup -s: --skip-chars N is the -s of uniq, and records need not be sorted
dedup --check-chars: --max-chars N is the same
dedup -t: -d BYTES sets the delimiter, as -t of sort
dedup -F: -d BYTES sets the delimiter, as -F of awk; -w splits fields at blanks
dedup -S: -m SIZE sets the memory
dedup -n: records need not be sorted; -k FIELDS compares only some fields
dedup -v: --invert writes the duplicates
dedup --with-count: exact counts of all keys have no bound in memory; --top-keys FILE counts the \
    most frequent
packets -d: duplicates are dropped without an option; --window-packets 4 compares with as many \
    packets as -d of editcap
packets -D: --window-packets N compares with the N packets before, as -D of editcap with N + 1
packets -w: -o FILE is the -w of tcpdump, and --window TIME that of editcap
packets -I: --from network, the default, leaves out the link header of any length, as -I of \
    editcap with a number of bytes
packets --skip-radiotap-header: --from network, the default, compares packets from the IP header on
packets -a: --tag marks each duplicate with a comment
packets -r: files stand without an option: echoless packets FILE -o OUT
packets -u: --invert writes only the duplicates; packets are written as soon as they are read, \
    without an option
packets -U: packets are written as soon as they are read, also to -o FILE
packets -c: --count writes only the number of packets; tcpdump -c N selects the first
packets -s: --snap-safe N compares at most the first N bytes; --snap-length N cuts what --interface \
    captures
packets -i: --interface IF captures packets, as -i of tcpdump
packets -F: -o FILE has the format of the input; --compress CODEC compresses it
packets -k: --from LAYER and --ignore FIELDS define what is compared
packets -v: --report shows where the copies come from
packets -n: --window-packets N is a window of packets; names are never looked up
packets -t: --window TIME is the time within which copies are dropped
packets -z: --compress gzip compresses the output; compressed inputs need no option";

/// The message about an option that does not exist, or lacks a value, if another program has it.
pub(super) fn message(error: &clap::Error) -> Option<String> {
    let text = |kind| match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    };
    let option = text(ContextKind::InvalidArg)?;
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let usage = text(ContextKind::Usage)?;
            let instead = HABITS.lines().find_map(|habit| {
                let (subcommand, habit) = habit.split_once(' ')?;
                let instead = habit.strip_prefix(&format!("{option}: "))?;
                let is_it = usage.contains(&format!("echoless {subcommand}"));
                is_it.then_some(instead)
            })?;
            Some(format!("unexpected argument '{option}' found; {instead}"))
        }
        ErrorKind::InvalidValue if option == "--delimiter <BYTES>" => {
            let is_missing = text(ContextKind::InvalidValue).is_none_or(|value| value.is_empty());
            is_missing.then(|| {
                format!(
                    "a value is required for '{option}' but none was supplied; dedup --repeated is \
                     the -d of uniq"
                )
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use clap::{Command, CommandFactory};

    use super::*;
    use crate::args::{Args, parse_from};

    /// The options of a subcommand that its help shows, and all of them.
    fn options(subcommand: &str) -> (Vec<String>, Vec<String>) {
        let command = Args::command();
        let all = command.find_subcommand(subcommand);
        let all = all.into_iter().flat_map(Command::get_arguments);
        let (mut shown, mut every) = (Vec::new(), vec!["-h".into(), "--help".into()]);
        for option in all {
            let short = option.get_short().map(|letter| format!("-{letter}"));
            let long = option.get_long().map(|long| format!("--{long}"));
            let names: Vec<String> = short.into_iter().chain(long).collect();
            if !option.is_hide_set() {
                shown.extend(names.clone());
            }
            every.extend(names);
        }
        (shown, every)
    }

    #[test]
    fn habits_are_no_options_and_name_one() {
        for habit in HABITS.lines() {
            let (name, instead) = habit.split_once(": ").unwrap();
            let (subcommand, option) = name.split_once(' ').unwrap();
            let (shown, every) = options(subcommand);
            assert!(
                !every.iter().any(|it| it == option),
                "{subcommand} {option}"
            );
            let mut words = instead.split([' ', ',', ';', ':']);
            let names_option = words.any(|word| shown.iter().any(|it| it == word));
            assert!(names_option, "{subcommand} {option}: {instead}");
            for arguments in [
                &[subcommand, option][..],
                &[subcommand, option, "5", "file"],
                &[subcommand, "-q", &format!("{option}=5"), "file"],
            ] {
                let message = parse_from(arguments).unwrap_err().to_string();
                let expected = format!("unexpected argument '{option}' found; {instead}");
                assert_eq!(message, expected, "{arguments:?}");
            }
        }
    }
}
