//! Building a filter from its specification: whole, in partitions, with access to its lines.

use super::filter::FilterSpec;
use crate::error::{BuildError, SpecError};
use crate::filters::adapters::layers::Layers;
use crate::filters::adapters::tracked::{Tracked, TrackedFraction};
use crate::filters::lines::LineFilter;
use crate::filters::{Filter, Form};
use crate::partition::Partitioned;

impl FilterSpec {
    /// Builds the filter.
    ///
    /// # Errors
    /// [`BuildError`] if the memory is not set, a value is outside its range, or the memory cannot
    /// be allocated.
    pub fn build(&self) -> Result<Box<dyn Filter>, BuildError> {
        Ok(self.track(self.needed_layers()?.build()?))
    }

    /// Builds the filter as `count` partitions, each a contiguous range of its lines, for one owner
    /// each.
    ///
    /// The partition that [`Partitioning::partition_of`](crate::Partitioning::partition_of) returns
    /// for a key gives it the verdict of the whole filter.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build`](Self::build), or if the form is scattered, or `count` is not
    /// 1 to the number of lines.
    ///
    /// # Examples
    /// ```
    /// use echoless::FilterSpec;
    /// use echoless::spec::Form;
    /// let spec: FilterSpec = "rowlru:form=line,memory=1MiB".parse()?;
    /// let parts = spec.build_partitions(2)?;
    /// assert_eq!(parts.partitioning().count(), 2);
    /// assert!(spec.form(Form::Scattered).build_partitions(2).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn build_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn Filter>>, BuildError> {
        let layers = self.partitioned_layers()?;
        let build = |lines| Ok(self.track(layers.build_lines(lines)?));
        layers.partition_plan()?.partitions(count, build)
    }

    /// The layers, checked for partitions.
    fn partitioned_layers(&self) -> Result<Layers<'_>, SpecError> {
        if self.form != Form::Line {
            let allowed = "line, the form that can be partitioned";
            return Err(SpecError::new("form", self.form.to_string(), allowed));
        }
        self.layers(0).line_form()?;
        if !self.has_partitions() {
            let allowed = "none, or horizontal alone, in a filter to be partitioned";
            return Err(SpecError::new(
                "adapters",
                self.adapters.to_string(),
                allowed,
            ));
        }
        self.needed_layers()
    }

    /// Builds the line form of this filter and gives access to its lines. Ignores
    /// [`form`](Self#structfield.form).
    ///
    /// # Errors
    /// [`BuildError`] as for [`build`](Self::build), or if not all keys are tracked.
    pub fn build_lines(&self) -> Result<Box<dyn LineFilter>, BuildError> {
        self.check_bare()?;
        let layers = self.needed_layers()?;
        let plan = layers.plan()?;
        plan.range(0..plan.lines, |lines| layers.build_lines(lines))
    }

    /// As [`build_lines`](Self::build_lines), in `count` partitions.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build_lines`](Self::build_lines), or if `count` is not 1 to the
    /// number of lines.
    pub fn build_line_partitions(
        &self,
        count: usize,
    ) -> Result<Partitioned<Box<dyn LineFilter>>, BuildError> {
        self.check_bare()?;
        self.needed_layers()?.partitions(count)
    }

    /// As [`build_lines`](Self::build_lines), but partition `index` of `count` alone, to take the
    /// place of a lost one.
    ///
    /// # Errors
    /// [`BuildError`] as for [`build_line_partitions`](Self::build_line_partitions), or if `index`
    /// is not less than `count`.
    pub fn build_line_partition(
        &self,
        index: usize,
        count: usize,
    ) -> Result<Box<dyn LineFilter>, BuildError> {
        self.check_bare()?;
        let layers = self.needed_layers()?;
        let build = |lines| layers.build_lines(lines);
        layers.plan()?.partition(index, count, build)
    }

    /// The adapters and the filter under them, in so much memory.
    pub(super) fn layers(&self, memory: u64) -> Layers<'_> {
        Layers {
            adapters: self.adapters.as_slice(),
            kind: self.kind,
            form: self.form,
            memory,
            seed: self.seed,
            kernel: self.kernel,
        }
    }

    pub(crate) fn needed_layers(&self) -> Result<Layers<'_>, SpecError> {
        Ok(self.layers(self.needed_memory()?))
    }

    fn needed_memory(&self) -> Result<u64, SpecError> {
        let missing = || SpecError::missing("memory", "a size such as memory=64MiB");
        self.memory.ok_or_else(missing)
    }

    /// Checks that nothing lies between the caller and the lines.
    pub(crate) fn check_bare(&self) -> Result<(), SpecError> {
        if !self.adapters.is_empty() {
            let allowed = "none, because access to the lines needs the filter itself";
            let adapters = self.adapters.to_string();
            return Err(SpecError::new("adapters", adapters, allowed));
        }
        if self.tracked == TrackedFraction::ALL {
            return Ok(());
        }
        let asked = self.tracked.get().to_string();
        let allowed = "1, because access to the lines needs a filter that tracks all keys";
        Err(SpecError::new("tracked", asked, allowed))
    }

    fn track(&self, filter: Box<dyn Filter>) -> Box<dyn Filter> {
        if self.tracked == TrackedFraction::ALL {
            filter
        } else {
            Box::new(Tracked::new(filter, self.tracked))
        }
    }
}
