//! `dedup --state`: which files the inputs are, after these were changed, copied, replaced and
//! compressed between runs. Files have a long common start, and often the same end.

use std::collections::BTreeSet;
use std::fs;

use proptest::prelude::*;

use crate::codecs::compress;
use crate::run::Folder;

/// Lines that each file begins with: more than any sample of it.
fn common() -> String {
    (0..300)
        .map(|number| format!("acct{number:05},open\n"))
        .collect()
}

/// Runs `dedup --exact` with the state of the folder.
#[track_caller]
fn pass(folder: &Folder, args: &str) -> String {
    let run = folder.echoless(format!(
        "dedup -m 64KiB --exact --state state -o out {args}"
    ));
    assert_eq!(run.code, 0, "{}", run.stderr);
    run.stderr
}

/// A file in the place of another one: it has a number of its own.
fn replace(folder: &Folder, name: &str, content: impl AsRef<[u8]>) {
    folder.write("new", content);
    folder.rename("new", name);
}

#[test]
fn a_line_that_changed_in_the_middle_is_found() {
    let (before, after) = (common(), common().replace("00149,open", "00149,shut"));
    type Change = fn(&Folder, &str);
    let changes: [(&str, Change); 4] = [
        ("log", |folder, after| replace(folder, "log", after)),
        ("log", |folder, after| folder.write("log", after)),
        ("log", |folder, after| {
            replace(folder, "log", after.to_owned() + "more\n");
        }),
        ("sub/other", |folder, after| {
            fs::remove_file(folder.path("log")).unwrap();
            fs::create_dir(folder.path("sub")).unwrap();
            folder.write("sub/other", after);
        }),
    ];
    for (number, (name, change)) in changes.into_iter().enumerate() {
        let folder = Folder::with(&[("log", &before)]);
        pass(&folder, "log");
        change(&folder, &after);
        let told = pass(&folder, name);
        assert!(
            folder.read("out").contains("00149,shut\n"),
            "{number}: {told}"
        );
        // Again, there is nothing new.
        let written = folder.read("out");
        assert!(pass(&folder, name).contains("skipped, read before"));
        assert_eq!(folder.read("out"), written);
    }
}

#[test]
fn a_copy_is_known_once_another_file_has_the_number_of_the_original() {
    for options in ["", "--window 10s --time-field 1 -k 2 -d ,"] {
        let folder = Folder::with(&[("log", "100,a\n101,b\n")]);
        pass(&folder, &format!("{options} log"));
        fs::copy(folder.path("log"), folder.path("log.1")).unwrap();
        folder.write("log", "200,c\n201,d\n");
        pass(&folder, &format!("{options} log"));
        let told = pass(&folder, &format!("{options} log.1 log"));
        assert_eq!(folder.read("out"), "100,a\n101,b\n200,c\n201,d\n", "{told}");
        assert_eq!(told.matches("skipped, read before").count(), 2, "{told}");
    }
}

/// What happens to the files `log` and `log.gz`, and to what they have.
#[derive(Debug, Clone)]
enum Step {
    Append(usize),
    /// Another value in a line, in the same file or in another one of its name.
    Change {
        line: prop::sample::Index,
        replaces: bool,
    },
    /// All lines, or those behind the common ones, are others.
    Renew(bool),
    /// Under another name, which is passed once more; the log goes on with the common lines.
    Rename,
    CopyAndTruncate,
    Touch,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        3 => (1_usize..40).prop_map(Step::Append),
        2 => (any::<prop::sample::Index>(), any::<bool>())
            .prop_map(|(line, replaces)| Step::Change { line, replaces }),
        1 => any::<bool>().prop_map(Step::Renew),
        1 => Just(Step::Rename),
        1 => Just(Step::CopyAndTruncate),
        1 => Just(Step::Touch),
    ];
    prop::collection::vec(step, 1..7)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn no_record_of_any_file_is_lost_or_comes_twice(
        steps in steps(),
        is_compressed: bool,
        codec in prop::sample::select(vec!["gzip", "zstd", "xz"]),
    ) {
        let folder = Folder::new();
        let name = if is_compressed { "log.z" } else { "log" };
        let mut lines: Vec<String> = common().lines().map(str::to_owned).collect();
        let mut next = 0;
        // As long as the common ones.
        let mut line = || {
            next += 1;
            format!("acct{next:05},next")
        };
        let mut inputs = vec![name.to_owned()];
        let mut all = BTreeSet::new();
        for step in [Step::Touch].into_iter().chain(steps) {
            let mut replaces = false;
            match step {
                Step::Append(count) => lines.extend((0..count).map(|_| line())),
                Step::Change { line: at, replaces: by_another } => {
                    *at.get_mut(&mut lines) = line();
                    replaces = by_another;
                }
                Step::Renew(is_whole) => {
                    lines.truncate(if is_whole { 0 } else { 200 });
                    lines.extend((0..50).map(|_| line()));
                }
                Step::Rename => {
                    let other = format!("{name}.{}", inputs.len());
                    folder.rename(name, &other);
                    inputs.insert(0, other);
                    lines.truncate(250);
                }
                Step::CopyAndTruncate => {
                    let other = format!("{name}.{}", inputs.len());
                    fs::copy(folder.path(name), folder.path(&other)).unwrap();
                    inputs.insert(0, other);
                    lines.truncate(250);
                }
                Step::Touch => {}
            }
            let text = lines.join("\n") + "\n";
            let content = match is_compressed {
                true => compress(codec, text.as_bytes()),
                false => text.into_bytes(),
            };
            match replaces {
                true => replace(&folder, name, content),
                false => folder.write(name, content),
            }
            all.extend(lines.iter().cloned());
            let told = pass(&folder, &inputs.join(" "));
            let written = folder.read("out");
            let written: Vec<&str> = written.lines().collect();
            prop_assert_eq!(written.len(), all.len(), "{}", told);
            prop_assert!(written.iter().all(|line| all.contains(*line)), "{}", told);
        }
    }
}
