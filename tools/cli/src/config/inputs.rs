//! Which files a run reads, and the one that it replaces: `--known` and `--in-place`.

use std::path::PathBuf;

use echoless::SpecError;
use echoless_records::compression::codec::{Codec, Compression, Detection};
use echoless_records::compression::length::codec_of;
use echoless_records::failure::Failure;
use echoless_records::files::{Source, Target};
use same_file::is_same_file;

/// The known inputs, and after them the others; standard input without any of these. Fails if
/// standard input would be read twice.
pub(super) fn all_sources(known: &[PathBuf], inputs: &[PathBuf]) -> Result<Vec<Source>, SpecError> {
    let mut all: Vec<Source> = known.iter().cloned().map(Source::from_path).collect();
    let known = all.len();
    all.extend(Source::all(inputs));
    let is_stdin = Source::is_stdin;
    let first = all.iter().position(is_stdin);
    if let Some(first) = first
        && all[first + 1..].iter().any(is_stdin)
    {
        let field = if first < known { "--known" } else { "input" };
        let allowed = "a file, since standard input can be read only once";
        return Err(SpecError::new(field, all[first].typed(), allowed));
    }
    Ok(all)
}

/// The output of `--in-place`, after `known` known inputs. `compress` is that of the output, and as
/// it was typed. Fails unless there is one other input, a regular file with the compression of the
/// output, which is no known file: all its records would be dropped.
pub(super) fn in_place(
    sources: &[Source],
    known: usize,
    detection: Detection,
    compress: Option<(Compression, &str)>,
) -> Result<Target, Failure> {
    let invalid = |named: String| {
        Failure::option(
            "--in-place",
            format!("one input, a regular file, not {named}"),
        )
    };
    let (known, inputs) = sources.split_at(known);
    let [input] = inputs else {
        return Err(invalid(format!("{} inputs", inputs.len())));
    };
    let Source::File(path) = input else {
        return Err(invalid(input.name()));
    };
    // A missing file is reported when the inputs are checked.
    if path.exists() && input.length().is_none() {
        return Err(invalid(input.name()));
    }
    for source in known {
        if let Source::File(other) = source
            && is_same_file(path, other).unwrap_or(false)
        {
            let (name, other) = (input.name(), "a file of --known".into());
            return Err(Failure::SameFile { name, other });
        }
    }
    let codec = codec_of(input, detection);
    match (codec, compress.map(|(compress, _)| compress.codec)) {
        (codec, compress) if codec == compress => Ok(Target::Replaced(path.clone())),
        (Some(codec), _) if !Codec::WRITTEN.contains(&codec) => Err(invalid(format!(
            "{} data, which is not written",
            codec.name()
        ))),
        (Some(codec), _) => {
            let codec = codec.name();
            let allowed = format!(
                "--compress {codec} beside --in-place, as {} is",
                input.name()
            );
            let given = compress.map_or("", |(_, typed)| typed);
            Err(SpecError::new("--compress", given, allowed).into())
        }
        (None, _) => {
            let allowed = format!("no --compress beside it, since {} is plain", input.name());
            Err(Failure::option("--in-place", allowed))
        }
    }
}
