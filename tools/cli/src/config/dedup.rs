//! The configuration of `echoless dedup`.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use echoless::spec::format_bytes;
use echoless::state::Header;
use echoless::{FilterSpec, FingerprintGeometry, Kernel, KeyHasher, SpecError};
use echoless_records::compression::length::{decompress_command, plain_len};
use echoless_records::count::{Estimate, estimate};
use echoless_records::failure::Failure;
use echoless_records::files::{Source, Target};
use echoless_records::format::Format;
use echoless_records::keys::{RecordReading, SharedFormat};
use echoless_records::number::{parse_if_given, parse_size, parse_time, parse_whole};
use echoless_records::options::{CheckedRecords, RecordUse};
use echoless_records::restart::StreamRestart;
use echoless_records::spec_file::{parse_filter, read_spec};
use echoless_records::tag::Tagger;

use super::default_filter::default_filter;
use super::inputs::{all_sources, in_place};
use super::keep::{Rereading, kept};
use super::known_states::KnownStates;
use super::memory_size::{MOST_DEFAULT_MEMORY, default_memory, most_distinct_records};
use super::packets::PacketConfig;
use super::run::RunConfig;
use super::window::{WindowConfig, check_filter};
use crate::args::{DedupArgs, Keep};
use crate::packets::header::StreamHeader;

/// The configuration of a run that removes duplicates, of records or of packets.
#[derive(Debug)]
pub(crate) struct DedupConfig {
    /// The inputs in the order in which they are read: first those whose records only count as
    /// seen, then those whose records are written.
    pub(crate) sources: Vec<Source>,
    /// The number of the former.
    pub(crate) known: usize,
    /// Whether the last input is followed: a regular file, which may grow and be rotated.
    pub(crate) follow: bool,
    /// The filters whose keys count as seen.
    pub(crate) known_states: KnownStates,
    /// Whether the filter has less than the default memory, because the process has little.
    pub(crate) little_memory: bool,
    /// The length of all sources, if all are regular files.
    pub(crate) input_bytes: Option<u64>,
    /// The same if none is compressed.
    pub(crate) plain_bytes: Option<u64>,
    pub(crate) content: Content,
    /// Which record of each key passes.
    pub(crate) keep: Keep,
    /// What the run needs if it reads its inputs several times.
    pub(crate) rereading: Option<Rereading>,
    /// The shape of the filter that finds what is compared, if all verdicts must be exact.
    pub(crate) exact: Option<FingerprintGeometry>,
    pub(crate) filter: FilterSpec,
    /// How long a key counts as seen; `None` is as long as the filter remembers it.
    pub(crate) window: Option<WindowConfig>,
    pub(crate) run: RunConfig,
    /// Where the run keeps what it knows.
    pub(crate) state: Option<StateConfig>,
    /// What an earlier run with the state has read; known when the run begins.
    pub(crate) restart: Option<StreamRestart>,
    /// The inputs that an earlier run has read, which are not read again; found when the run
    /// begins. `None` if that is not requested.
    pub(crate) skipped: Option<Vec<Source>>,
    /// What the capture files among the inputs have in common; read when the run begins.
    pub(crate) stream_header: StreamHeader,
}

/// Where a run keeps what it knows.
#[derive(Debug, Clone)]
pub(crate) struct StateConfig {
    pub(crate) folder: PathBuf,
    /// How often it is put on the disk.
    pub(crate) interval: Duration,
    /// Whether inputs that were read to their end are read again.
    pub(crate) again: bool,
    /// The options that must not change, each with its value if it takes one.
    pub(crate) options: Vec<(String, Option<String>)>,
}

impl StateConfig {
    /// The state of these options. Fails if records of the format, or the filter, cannot have one.
    fn from_args(
        args: &DedupArgs,
        format: &dyn Format,
        filter: &FilterSpec,
    ) -> Result<Option<Self>, Failure> {
        let Some(folder) = &args.state else {
            return Ok(None);
        };
        let invalid = |allowed: String| {
            let error = SpecError::new("--state", folder.display().to_string(), allowed);
            Err(error.into())
        };
        if args.exact && args.commit_interval.is_some() {
            let allowed = "no --exact beside it, which commits a run once, at its end";
            return Err(Failure::option("--commit-interval", allowed));
        }
        if format.facts().depends_on_start {
            return invalid("a format of records that are not inside of other elements".into());
        }
        let in_lines = |hasher| Header::new(filter, &hasher).is_ok();
        if !filter.has_partitions() || !in_lines(KeyHasher::seeded(0)) {
            return invalid(format!("a filter in lines of its own, not {filter}"));
        }
        let interval = parse_if_given(
            "--commit-interval",
            args.commit_interval.as_deref(),
            |option, text| parse_time(option, text).map(Duration::from_nanos),
        )?;
        Ok(Some(Self {
            folder: folder.clone(),
            interval: interval.unwrap_or(COMMIT_INTERVAL),
            again: args.again,
            options: args.lasting(),
        }))
    }
}

/// How often a state is put on the disk, unless the options say so.
const COMMIT_INTERVAL: Duration = Duration::from_secs(1);

/// What the inputs hold.
#[derive(Debug)]
pub(crate) enum Content {
    Records(Arc<RecordConfig>),
    Packets(Arc<PacketConfig>),
}

impl DedupConfig {
    /// The inputs whose records are written.
    pub(crate) fn inputs(&self) -> &[Source] {
        &self.sources[self.known..]
    }

    /// The folder of the state.
    pub(crate) fn state_folder(&self) -> Option<&Path> {
        self.state.as_ref().map(|state| &*state.folder)
    }

    /// All inputs, also those that are skipped because an earlier run has read them.
    pub(crate) fn all_inputs(&self) -> impl Iterator<Item = &Source> {
        self.sources.iter().chain(self.skipped.iter().flatten())
    }
}

impl Content {
    /// Whether one record of each key that occurs again is written.
    pub(crate) fn is_repeated(&self) -> bool {
        matches!(self, Self::Records(records) if records.outputs.repeated)
    }

    /// What one record is called, in the singular.
    pub(crate) fn noun(&self) -> &'static str {
        match self {
            Self::Records(_) => "record",
            Self::Packets(_) => "packet",
        }
    }

    /// The format of the records; packets need none, because their reader frames them.
    pub(crate) fn format(&self) -> Option<&SharedFormat> {
        match self {
            Self::Records(records) => Some(&records.reading.format),
            Self::Packets(_) => None,
        }
    }

    /// Whether a diagnosis takes the place of the records.
    pub(crate) fn is_diagnosed(&self) -> bool {
        match self {
            Self::Records(_) => false,
            Self::Packets(packets) => packets.diagnosis.is_some(),
        }
    }

    /// Whether file headers are rewritten for the records that were written.
    pub(crate) fn fixes_header(&self) -> bool {
        match self {
            Self::Records(records) => records.fix_header,
            Self::Packets(_) => false,
        }
    }
}

/// Records, how they are read, and what only this subcommand does with them.
#[derive(Debug)]
pub(crate) struct RecordConfig {
    pub(crate) reading: Arc<RecordReading>,
    /// Whether the file header is rewritten for the records that were written.
    pub(crate) fix_header: bool,
    /// Writes verdicts into the records, which all pass.
    pub(crate) tagger: Option<Arc<Tagger>>,
    pub(crate) outputs: RecordOutputs,
}

/// The outputs that only records have.
#[derive(Debug)]
pub(crate) struct RecordOutputs {
    pub(crate) rejects: Option<RejectTargets>,
    /// Gets the verdicts on all records, which then all pass.
    pub(crate) tag_file: Option<Target>,
    /// Whether one record of each key that occurs again is written.
    pub(crate) repeated: bool,
    /// Gets the keys with the most duplicates, so many at most.
    pub(crate) top_keys: Option<(Target, usize)>,
}

/// The number of keys of `--top-keys` unless the options set another one.
const TOP_KEYS: usize = 100;

/// The most keys of `--top-keys`. Their table takes some 35 MB.
const MOST_TOP_KEYS: usize = 10_000;

impl TryFrom<DedupArgs> for DedupConfig {
    type Error = Failure;

    fn try_from(args: DedupArgs) -> Result<Self, Failure> {
        args.refused.check()?;
        let CheckedRecords {
            reading,
            time,
            files,
        } = CheckedRecords::new(
            &args.records,
            RecordUse {
                time: args.time_field.as_deref(),
                tag: args.tag.is_some(),
                rejects: args.rejects.is_some(),
            },
        )?;
        let format = &reading.format;
        if args.fix_header {
            check_fix_header(&**format, &args)?;
        }
        let window = WindowConfig::from_args(&args, time)?;
        let sources = all_sources(&args.known, &args.inputs)?;
        let (keep, backwards) = kept(&args)?;
        let rereading = Rereading::new(&args, backwards, &sources, reading.as_they_are)?;
        let known = args.known.len();
        if args.follow {
            check_followed(sources.last(), reading.as_they_are)?;
        }
        // What is still to come of a file that is followed is unknown.
        let lengths = (!args.follow).then(|| &sources[..]);
        let input_bytes = lengths.and_then(Source::total_len);
        let plain_bytes = lengths.and_then(|sources| plain_len(sources, reading.detection()));
        let mut settings: Vec<Source> = files.into_iter().map(Source::File).collect();
        let memory = parse_if_given("--memory", args.memory.as_deref(), parse_size)?;
        // An exact run compares times itself.
        let filtered_window = window.as_ref().filter(|_| !args.exact);
        let mut exact = None;
        let filter = match &args.filter {
            Some(name) => named_filter(name, filtered_window, memory, &mut settings)?,
            None => {
                // The memory of a state does not depend on the first inputs.
                let is_known = args.state.is_none();
                let keys = || most_keys(&sources, plain_bytes.filter(|_| is_known)?, &**format);
                let spec = |memory| default_filter(&args, filtered_window, memory, keys);
                let (spec, shape) = spec(memory).map_err(|error| {
                    let of_memory = error.field.ends_with("fpr") && spec(None).is_ok();
                    name_option(error, &args, of_memory)
                })?;
                exact = args.exact.then_some(shape);
                match args.kernel.as_str() {
                    "auto" => spec,
                    name => spec.kernel(Kernel::from_str(name)?),
                }
            }
        };
        let is_default = args.filter.is_none() && memory.is_none();
        let is_reduced = |bytes| bytes < MOST_DEFAULT_MEMORY && bytes == default_memory();
        let little_memory = is_default && filter.memory.is_some_and(is_reduced);
        // The two filters of `--repeated` share the memory.
        let filter = match filter.memory {
            Some(bytes) if args.repeated && little_memory && exact.is_none() => {
                filter.memory(bytes / 2)
            }
            Some(_) | None => filter,
        };
        check_filter(filtered_window, &args, &filter)?;
        let state = StateConfig::from_args(&args, &**format, &filter)?;
        let known_states = KnownStates::new(&args);
        settings.extend(args.known_state.iter().cloned().map(Source::File));
        let tagger = match args.tag {
            Some(name) => Some(Arc::new(tagger(format, name, args.rejects.is_some())?)),
            None => None,
        };
        let top = parse_if_given("--top", args.top.as_deref(), |option, text| {
            parse_whole(option, text, 1..=MOST_TOP_KEYS)
        })?
        .unwrap_or(TOP_KEYS);
        let outputs = RecordOutputs {
            rejects: args.rejects.map(RejectTargets::new).transpose()?,
            tag_file: args.tag_file.map(Target::from),
            repeated: args.repeated,
            top_keys: args.top_keys.map(|path| (Target::from(path), top)),
        };
        let records = RecordConfig {
            reading: Arc::new(reading),
            fix_header: args.fix_header,
            tagger,
            outputs,
        };
        let compress = args.run.compress.clone();
        let mut run = RunConfig::new(args.run, args.threads, settings)?;
        run.invert |= args.all_repeated;
        if args.in_place {
            let compress = run.compress.zip(compress.as_deref());
            run.output = in_place(&sources, known, records.reading.detection(), compress)?;
        }
        Ok(Self {
            little_memory,
            sources,
            known,
            follow: args.follow,
            known_states,
            input_bytes,
            plain_bytes,
            content: Content::Records(Arc::new(records)),
            keep,
            rereading,
            exact,
            filter,
            window,
            run,
            state,
            restart: None,
            skipped: None,
            stream_header: StreamHeader::default(),
        })
    }
}

/// Checks that an input can be followed. A missing file is reported when the inputs are checked.
fn check_followed(source: Option<&Source>, as_they_are: bool) -> Result<(), Failure> {
    let Some(source @ Source::File(path)) = source else {
        let allowed = "the name of a regular file as the last input, not standard input";
        return Err(Failure::option("--follow", allowed));
    };
    let name = source.name();
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let allowed = format!("a regular file as the last input, not {name}");
        return Err(Failure::option("--follow", allowed));
    }
    if !as_they_are && decompress_command(source, &name).is_some() {
        let allowed = format!("a plain file as the last input, and {name} is compressed");
        return Err(Failure::option("--follow", allowed));
    }
    Ok(())
}

/// Checks that the outputs have file headers, and can be rewritten at the end of the run. That they
/// are regular files is checked once they are open.
fn check_fix_header(format: &dyn Format, args: &DedupArgs) -> Result<(), Failure> {
    let invalid = |allowed: &str| Failure::option("--fix-header", allowed);
    if format.facts().file_header_end.is_none() {
        return Err(invalid("a format with file headers, --format ber:ts32297"));
    }
    if args.run.count {
        return Err(invalid("an output of records, not --count"));
    }
    if args.run.compress.is_some() {
        return Err(invalid("outputs that are not compressed"));
    }
    Ok(())
}

/// The outputs of faulty records.
#[derive(Debug)]
pub(crate) struct RejectTargets {
    pub(crate) records: Target,
    /// A file next to that of the records, for their positions.
    pub(crate) record_positions: Target,
}

impl RejectTargets {
    fn new(path: PathBuf) -> Result<Self, SpecError> {
        let records = Target::from(path);
        let record_positions = records.record_positions("--rejects")?;
        Ok(Self {
            records,
            record_positions,
        })
    }
}

/// Writes the verdicts of `--tag`.
fn tagger(format: &SharedFormat, name: String, rejects: bool) -> Result<Tagger, SpecError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    if name.is_empty() || !name.bytes().all(is_plain) {
        let allowed = "a name of letters, digits, `_`, `-` and `.`";
        return Err(SpecError::new("--tag", name, allowed));
    }
    let Some(style) = format.facts().tag_style.clone() else {
        let allowed = "fields with delimiters, or JSON lines; --tag-file FILE with any format";
        return Err(SpecError::new("--tag", name, allowed));
    };
    Ok(Tagger::new(format.clone(), style, name, rejects))
}

/// The filter that `--filter` names. If that is a file, it is added to the run's `settings`.
fn named_filter(
    name: &str,
    window: Option<&WindowConfig>,
    memory: Option<u64>,
    settings: &mut Vec<Source>,
) -> Result<FilterSpec, Failure> {
    let path = Path::new(name);
    let spec = if path.extension().is_some_and(|end| end == "toml") {
        settings.push(Source::File(path.into()));
        read_spec(path)?
    } else {
        match window {
            Some(window) => window.named_filter(name, memory)?,
            None => parse_filter(name, memory)?,
        }
    };
    Ok(with_memory(spec, memory)?)
}

/// The error of a default filter, with the option that was typed. A rate that other memory would
/// keep is not at fault.
fn name_option(error: SpecError, args: &DedupArgs, memory_at_fault: bool) -> Failure {
    let SpecError { field, allowed, .. } = &error;
    match (&args.memory, *field) {
        (Some(memory), _) if memory_at_fault => {
            let allowed = format!("less memory, or a rate --fpr of {allowed}");
            SpecError::new("--memory", memory, allowed).into()
        }
        (_, "fpr") => SpecError {
            field: "--fpr",
            ..error
        }
        .into(),
        (memory, _) => Failure::from(error).of_memory(memory.as_deref()),
    }
}

/// About the highest number of distinct keys in these inputs of so many plain bytes. Of the gaps
/// that the estimate of their number leaves, one of each file may be full of the shortest records.
fn most_keys(sources: &[Source], bytes: u64, format: &dyn Format) -> Option<u64> {
    // Files of `/proc` have a length of 0 and content all the same.
    if sources.iter().any(|source| source.length() == Some(0)) {
        return None;
    }
    let overhead = u64::from(!format.facts().terminator.is_empty());
    // The last record of an input may lack its terminator.
    let lacking = overhead * sources.len() as u64;
    let fitting = most_distinct_records(bytes.saturating_add(lacking), overhead);
    let estimated = estimate(sources, bytes, format)
        .map(|Estimate { records, gap }| records + most_distinct_records(gap, overhead));
    Some(estimated.map_or(fitting, |records| records.min(fitting)))
}

/// The filter with the memory of `-m`, or that of its specification, or the default. Fails if the
/// option and the specification disagree.
fn with_memory(spec: FilterSpec, option: Option<u64>) -> Result<FilterSpec, SpecError> {
    match (spec.memory, option) {
        (Some(own), Some(asked)) if own != asked => {
            let allowed = format!("{}, as in --filter", format_bytes(own));
            Err(SpecError::new("--memory", format_bytes(asked), allowed))
        }
        (Some(_), _) => Ok(spec),
        (None, asked) => Ok(spec.memory(asked.unwrap_or_else(default_memory))),
    }
}
