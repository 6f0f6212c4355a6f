//! What a run of `echoless eval` shall do: every value checked, every default filled in.

use std::path::PathBuf;

use echoless::{FilterSpec, SpecError};
use echoless_lab::stream::{Stream, parse_count};

use crate::args::EvalArgs;
use crate::failure::Failure;
use crate::files::Source;
use crate::lab_output::LabOutput;
use crate::number::parse_size;
use crate::recorded::Recorded;
use crate::spec_file::read_specs;

/// A run of `echoless eval`.
#[derive(Debug)]
pub(crate) struct EvalConfig {
    pub(crate) specs: Vec<FilterSpec>,
    pub(crate) input: Input,
    pub(crate) window: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) points: u64,
    pub(crate) outputs: LabOutput,
    pub(crate) plots: Option<PathBuf>,
}

/// Where the stream comes from.
#[derive(Debug)]
pub(crate) enum Input {
    Made(Stream),
    Recorded(Recorded),
}

impl Input {
    /// The stream.
    pub(crate) fn stream(&self) -> Result<Stream, Failure> {
        match self {
            Self::Made(stream) => Ok(stream.clone()),
            Self::Recorded(recorded) => recorded.read(),
        }
    }

    /// The file it is read from, if it is.
    pub(crate) fn source(&self) -> Option<&Source> {
        match self {
            Self::Made(_) => None,
            Self::Recorded(recorded) => Some(&recorded.source),
        }
    }
}

impl TryFrom<EvalArgs> for EvalConfig {
    type Error = Failure;

    fn try_from(args: EvalArgs) -> Result<Self, Failure> {
        let mut specs = Vec::new();
        for text in &args.filters {
            specs.push(text.parse()?);
        }
        if let Some(path) = &args.specs {
            specs.extend(read_specs(path)?);
        }
        if specs.is_empty() {
            let allowed = "a SPEC such as rlbsbf:k=2,memory=64MiB, or --specs FILE";
            return Err(SpecError::missing("filters", allowed).into());
        }
        if let Some(text) = &args.memory {
            let memory = parse_size("memory", text)?;
            for spec in specs
                .iter_mut()
                .filter(|spec: &&mut FilterSpec| spec.memory.is_none())
            {
                *spec = spec.memory(memory);
            }
        }
        Ok(Self {
            specs,
            input: match Recorded::from_args(args.input, args.fields, "input")? {
                Some(recorded) => Input::Recorded(recorded),
                None => Input::Made(args.stream.parse()?),
            },
            window: args
                .window
                .map(|text| parse_count("window", &text))
                .transpose()?,
            seed: args.seed,
            points: parse_count("points", &args.points)?,
            outputs: args.outputs.into(),
            plots: args.plots,
        })
    }
}
