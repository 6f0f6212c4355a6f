//! Saving: a filter in lines, or all its partitions, to bytes.

use std::io::Write;

use super::error::StateError;
use super::format::{CHUNK, LINE, bytes_of, header};
use crate::error::{BuildError, SpecError};
use crate::filters::lines::{LineFilter, Progress};
use crate::hash::{KeyHasher, checksum};
use crate::spec::FilterSpec;

impl FilterSpec {
    /// Writes the state of a filter that [`build_lines`](Self::build_lines) built from this
    /// specification, or of all its partitions in their order. [`SavedState`](super::SavedState)
    /// reads it.
    ///
    /// The state contains the [id](KeyHasher::id) of the hasher of the keys, and not its seed or
    /// secret key. The clocks of the partitions advance to the latest one; nothing else changes.
    /// Writes in pieces of 64 KiB, as many bytes as the filter has memory, and flushes `output`.
    ///
    /// A crash in the middle leaves half a state, so write to a file beside the old state, call
    /// [`File::sync_all`](std::fs::File::sync_all) and rename it over the old one; the rename
    /// itself is safe from a power failure once the folder is synchronised, too.
    ///
    /// # Errors
    /// [`StateError::Build`] if [`build_lines`](Self::build_lines) would reject the specification,
    /// or the filters have another one, or are not all of its lines in their order;
    /// [`StateError::Io`] if `output` fails.
    ///
    /// # Examples
    /// ```
    /// use std::fs::{self, File};
    /// use std::io::BufReader;
    ///
    /// use echoless::spec::SavedState;
    /// use echoless::{FilterSpec, KeyHasher};
    ///
    /// let hasher = KeyHasher::seeded(0);
    /// let spec: FilterSpec = "fingerprint:fpr=1e-8,memory=1MiB".parse()?;
    /// // Two partitions, such as an engine returns when it is shut down.
    /// let mut partitions = spec.build_line_partitions(2)?;
    /// let state = std::env::temp_dir().join(format!("{}.state", std::process::id()));
    /// let fresh = state.with_extension("new");
    /// let file = File::create(&fresh)?;
    /// spec.save(partitions.filters_mut(), &hasher, &file)?;
    /// file.sync_all()?;
    /// fs::rename(&fresh, &state)?;
    ///
    /// let saved = SavedState::open(BufReader::new(File::open(&state)?))?;
    /// saved.check(&spec, &hasher)?;
    /// assert_eq!(saved.restore_partitions(3)?.partitioning().count(), 3);
    /// # fs::remove_file(state)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn save<F: LineFilter>(
        &self,
        partitions: &mut [F],
        hasher: &KeyHasher,
        mut output: impl Write,
    ) -> Result<(), StateError> {
        let (lines, parameters) = self.line_parameters()?;
        let mut next = 0;
        for part in &*partitions {
            let range = part.range();
            if (range.total, range.first) != (lines, next) {
                let asked = format!("those from line {} of {}", range.first, range.total);
                let allowed =
                    format!("all partitions in their order, the next from line {next} of {lines}");
                return Err(SpecError::new("partitions", asked, allowed).into());
            }
            if part.parameters() != parameters {
                let asked = "those of another specification";
                let allowed = format!("filters of {self}");
                return Err(SpecError::new("partitions", asked, allowed).into());
            }
            next += part.lines().len() as u64;
        }
        if next != lines {
            let asked = format!("{next} lines");
            let allowed = format!("all {lines} lines");
            return Err(SpecError::new("partitions", asked, allowed).into());
        }
        let tick = partitions.iter().map(|part| part.progress().tick).max();
        let mut whole = Progress::default();
        for part in &mut *partitions {
            // Its clock may be in an earlier era.
            part.advance_to(tick.unwrap_or(0));
            part.finish_expiry();
            let progress = part.progress();
            whole.observed += progress.observed;
            whole.fresh += progress.fresh;
            whole.evictions += progress.evictions;
            whole.tick = progress.tick;
        }
        let header = header(self, hasher.id(), whole);
        let mut sum = checksum(0, &header);
        output.write_all(&header)?;
        output.write_all(&sum.to_ne_bytes())?;
        let mut bytes = Vec::with_capacity(CHUNK * LINE);
        for part in &*partitions {
            for chunk in part.lines().chunks(CHUNK) {
                bytes.clear();
                for line in chunk {
                    let line = bytes_of(*line);
                    sum = checksum(sum, &line);
                    bytes.extend(line);
                }
                output.write_all(&bytes)?;
            }
        }
        output.write_all(&sum.to_ne_bytes())?;
        Ok(output.flush()?)
    }

    /// The number of lines, and the [parameters](LineFilter::parameters) that a filter of this
    /// specification has.
    pub(super) fn line_parameters(&self) -> Result<(u64, String), BuildError> {
        self.check_bare()?;
        let layers = self.needed_layers()?;
        let plan = layers.plan()?;
        let first = plan.first_bucket(|first| layers.build_lines(first))?;
        Ok((plan.lines, first.parameters()))
    }
}
