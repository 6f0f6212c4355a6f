//! The configuration of `echoless eval`.

use std::path::PathBuf;

use echoless::{FilterSpec, SpecError};
use echoless_lab::stream::parse_count;

use super::records::record_file;
use super::{parse_filter, parse_if_given, parse_seed};
use crate::args::EvalArgs;
use crate::failure::Failure;
use crate::lab::input::Input;
use crate::lab::output::LabOutput;
use crate::number::parse_size;
use crate::spec_file::read_specs;

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

impl TryFrom<EvalArgs> for EvalConfig {
    type Error = Failure;

    fn try_from(args: EvalArgs) -> Result<Self, Failure> {
        let memory = parse_if_given("--memory", args.memory.as_deref(), parse_size)?;
        let mut specs = Vec::new();
        for text in &args.filters {
            specs.push(parse_filter(text, memory)?);
        }
        if let Some(path) = &args.specs {
            specs.extend(read_specs(path)?);
        }
        if specs.is_empty() {
            let allowed = "SPEC arguments such as rlbsbf:k=2,memory=64MiB, or --specs FILE";
            return Err(SpecError::missing("filters", allowed).into());
        }
        if let Some(memory) = memory {
            let unsized_specs = specs.iter_mut();
            let unsized_specs =
                unsized_specs.filter(|spec: &&mut FilterSpec| spec.memory.is_none());
            unsized_specs.for_each(|spec| *spec = spec.memory(memory));
        }
        Ok(Self {
            specs,
            input: match record_file("--input", args.input, &args.file)? {
                Some(file) => Input::File(file),
                None => Input::Generated(args.stream.parse()?),
            },
            window: parse_if_given("--window", args.window.as_deref(), parse_count)?,
            seed: parse_seed(&args.seed)?,
            points: parse_count("--points", &args.points)?,
            outputs: args.outputs.into(),
            plots: args.plots,
        })
    }
}
