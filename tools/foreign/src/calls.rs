//! The table of calls: what programs in other languages can do with an [`Object`],
//! with their arguments and results, each written once.
//!
//! A row is a method of `Object` of the same name. C exports each row as a function, whose argument
//! types check what a program passes (`tools/capi/src/argument.rs`); the headers of C, C++ and Go
//! and the stubs of Python are written from the rows. Java and Python run the rows of `numbers` by
//! their [`Call`].

use std::time::Duration;

use crate::failure::Failure;
use crate::handles::exclusive;
use crate::object::{FILTER, Object};

/// Passes the table of calls to a macro, as rows of three sections:
///
/// - `made` makes an object,
/// - `numbers` takes one number at most, and returns one at most,
/// - `calls` takes and returns anything else.
///
/// A row is `name(argument: Type, ..) -> (result: Type, ..);`. The types are those of
/// `tools/capi/src/argument.rs`.
#[macro_export]
macro_rules! for_each_call {
    ($then:ident) => {
        $then! {
            made {
                /// Makes an object from a specification: `kind` is an `echoless_kind`. A filter is
                /// made from one such as "fingerprint:fpr=1e-8,memory=64MiB", a shared filter from
                /// one such as "row4x16:memory=64MiB", and an ordered filter or an engine of so
                /// many `partitions` from that of a filter in lines. Threads that do nothing but
                /// judge need a partition each; verdicts do not depend on the number. A filter, one
                /// without errors, which is made from that of a filter in lines, and a shared one
                /// have 1. Free it with `echoless_free`.
                new(kind: Kind, spec: Text, hashing: Hashing, partitions: Count) -> (out: Handle);
                /// Restores an object that was saved: a filter from the states of all its parts in
                /// any order, an ordered filter of `partitions` partitions from those of an ordered
                /// filter with any number of them, or of a filter, and a shared filter from that of
                /// a shared one. A filter without errors is opened as it was last saved, by the
                /// path of its folder, which no other handle or process may use meanwhile.
                /// `hashing` is that of the saved one. `memory_limit` rejects a filter of more
                /// memory before it is built; with `UINT64_MAX` there is no limit. `bytes` gets the
                /// bytes that were saved with it, those of parts behind each other in the order of
                /// their lines.
                load(
                    kind: Kind,
                    from: Source,
                    hashing: Hashing,
                    partitions: Count,
                    memory_limit: Number
                ) -> (bytes: OptionalRoom, out: Handle);
            }
            numbers {
                /// Moves the clock of the window of a filter or a shared one to `tick`. An earlier
                /// tick has no effect, and neither has any without a window.
                advance(tick: Number) -> ();
                /// Removes all keys of a filter, and resets the counters and the clock; those of a
                /// shared filter while no thread observes any, and those of one without errors
                /// unless it was saved.
                clear() -> ();
                /// The memory of the state of a filter of any kind, in bytes.
                memory_bytes() -> (bytes: OptionalNumber);
                /// The number of lines of a filter. The parts of a state are ranges of them.
                lines() -> (lines: OptionalNumber);
                /// Takes the next ticket of an ordered filter: the batch of the next
                /// `echoless_observe` of this thread applies after those of all tickets that were
                /// taken before. Usually under the lock of the input, so that both have one order.
                /// Does not block. Without effect if the thread holds a ticket.
                ///
                /// All later tickets wait until the batch has passed, so a thread that holds a
                /// ticket must observe, or leave it out with `echoless_leave`.
                take() -> ();
                /// Leaves out the ticket that a thread holds, if it holds one.
                leave() -> ();
                /// Waits at most so many milliseconds: a thread for the turn of the ticket that it
                /// holds, which it takes if it holds none; a port until `echoless_drain` would not
                /// wait, since the oldest batch in flight is answered or there is none. If the time
                /// is over, that is `ECHOLESS_STATUS_TIMED_OUT`, and nothing has changed: the
                /// thread still holds its ticket, in its place among the others.
                wait(milliseconds: Number) -> ();
            }
            calls {
                /// Opens the access of one more thread: an `echoless_observe` of its own to an
                /// ordered filter, or a port to an engine. One thread at a time may use it. Free it
                /// with `echoless_free`.
                open() -> (out: Handle);
                /// Probes and inserts each key in order, with a filter, one without errors, a
                /// shared one, or a thread of an ordered one. Bit `i % 64` of `duplicates[i / 64]`
                /// is set if key `i` is a duplicate, and `duplicates` has one bit for each key,
                /// rounded up to whole words: bits past the last key are zero. `count`, if it is
                /// not NULL, gets the number of duplicates.
                ///
                /// Of equal keys of several threads, exactly one is fresh in a shared filter, with a
                /// window in each of them. A thread observes with the ticket that it holds, or else
                /// the next one, and waits at each partition for the batches of lower tickets. After
                /// an error about the arguments, it still holds its ticket; after any other error the
                /// batch has passed the partitions that are not lost.
                ///
                /// A filter without errors takes keys in all forms but hashes, and ticks have no
                /// effect. If its folder fails, so do all later calls: load it as it was last
                /// saved.
                observe(keys: Keys, duplicates: Verdicts) -> (count: OptionalNumber);
                /// Whether each key would be a duplicate now, as `echoless_observe` writes it, in a
                /// filter, one without errors or a shared one. Changes nothing; ticks of the keys
                /// have no effect.
                contains(keys: Keys, duplicates: Verdicts) -> (count: OptionalNumber);
                /// The hash of each key, as a filter of any kind hashes it, for a program that
                /// passes keys to several filters with the same hashing.
                hash(keys: Keys, hashes: Hashes) -> ();
                /// Submits a batch to a port; waits if the workers are behind. The keys are hashed
                /// before the call returns, so their memory can be used again. All keys have one
                /// tick, that of the last of them, if they have ticks.
                submit(keys: Keys) -> ();
                /// Waits for the verdicts of the oldest batch in flight of a port. `duplicates` gets
                /// their bits as `echoless_observe` writes them, `keys` the number of keys, 0 if no
                /// batch is in flight or the batch was empty, and `count` that of the duplicates;
                /// both may be NULL. If the verdicts do not fit, that is an error, and the same
                /// batch comes with the next call.
                drain(duplicates: Words) -> (keys: OptionalCount, count: OptionalNumber);
                /// Counters and error estimates of a filter of any kind. Set `report->size` to
                /// `sizeof(echoless_report)` first; the fields that the library knows are written,
                /// up to that size. This may read the whole filter. An ordered filter and an engine
                /// report one point of the stream, while threads observe; from a thread that holds
                /// no ticket.
                read_report() -> (report: Report);
                /// Writes the specification of a filter of any kind as a text with a NUL into
                /// `text`, whose length is that without the NUL.
                spec() -> (text: TextRoom);
                /// Saves a filter of any kind but an engine with `bytes` of the caller, such as a
                /// position in a stream. A file is replaced as a whole: it has the old content or
                /// the new one, also after a power cut. The secret of the hashing is not in it. Of
                /// filters, only those in lines can be saved, and these also in parts, the lines
                /// from `first` to before `end` of `echoless_to_lines`. A function that bytes are
                /// written to must not use the filter, unless it is a shared one.
                ///
                /// A shared filter is used meanwhile, and no call waits: the state has the keys of
                /// the calls that had ended before, and each later key or not.
                ///
                /// A filter without errors is saved in a folder, which the first call makes and
                /// moves the digests of all keys to, and later ones add the new keys to. After a
                /// kill or a power cut the folder is as it was last saved. The secret of the
                /// digests is in it.
                save(to: Target, bytes: Bytes) -> ();
                /// Saves an ordered filter as `echoless_save` does, with bytes of the point of the
                /// stream where the state ends, which `cut` writes.
                save_at(to: Target, cut: Cut) -> ();
                /// Stops the workers of an engine once they have answered what was submitted
                /// before, and writes the report of the filter, if `report` is not NULL. Answered
                /// batches can still be drained; new ones are rejected, and so is a drain without a
                /// batch in flight.
                shutdown() -> (report: OptionalReport);
            }
        }
    };
}

macro_rules! calls_of_numbers {
    (
        made { $($made:tt)* }
        numbers {$(
            $(#[doc = $doc:literal])*
            $name:ident($($argument:ident: $type:ident),*) -> ($($result:ident: $place:ident),*);
        )*}
        calls { $($calls:tt)* }
    ) => {
        /// A call that takes one number at most, and returns one at most.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(non_camel_case_types, reason = "the names of the rows")]
        pub enum Call {$(
            $(#[doc = $doc])*
            $name,
        )*}

        impl Call {
            /// All of them, in the order of the table.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The name of its row.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {$(
                    Self::$name => stringify!($name),
                )*}
            }
        }

        impl Object {
            /// Runs a call of the section `numbers`. Those that take none leave out `argument`, and
            /// the result of those that return none is 0.
            ///
            /// # Errors
            /// [`Failure`] of the method of this name.
            pub fn call(&self, call: Call, argument: u64) -> Result<u64, Failure> {
                match call {$(
                    Call::$name => self
                        .$name($(calls_of_numbers!(argument $argument argument))*)
                        .map(|result| calls_of_numbers!(result result $($result)*)),
                )*}
            }
        }
    };
    (argument $name:ident $argument:ident) => { $argument };
    (result $result:ident) => {{ let () = $result; 0 }};
    (result $result:ident $name:ident) => { $result };
}

for_each_call!(calls_of_numbers);

/// The calls of the section `numbers`.
impl Object {
    fn advance(&self, tick: u64) -> Result<(), Failure> {
        match self {
            Self::Shared(shared) => shared.advance_to(tick),
            // It has no window.
            Self::Exact(exact) => drop(exclusive(FILTER, exact)?),
            _ => self.as_filter()?.advance_to(tick),
        }
        Ok(())
    }

    fn clear(&self) -> Result<(), Failure> {
        match self {
            Self::Shared(shared) => shared.clear(),
            Self::Exact(exact) => exclusive(FILTER, exact)?.clear()?,
            _ => self.as_filter()?.clear(),
        }
        Ok(())
    }

    fn memory_bytes(&self) -> Result<u64, Failure> {
        Ok(match self {
            Self::Shared(shared) => shared.memory_bytes(),
            Self::Exact(exact) => exclusive(FILTER, exact)?.memory_bytes(),
            Self::Ordered(ordered) => ordered.memory_bytes,
            Self::Engine(workers) => workers.memory_bytes,
            Self::Partitions(filter) => exclusive(FILTER, filter)?.memory_bytes(),
            _ => self.as_filter()?.memory_bytes(),
        })
    }

    pub(crate) fn lines(&self) -> Result<u64, Failure> {
        self.as_filter()?.lines()
    }

    fn take(&self) -> Result<(), Failure> {
        self.as_thread()?.take();
        Ok(())
    }

    fn leave(&self) -> Result<(), Failure> {
        self.as_thread()?.leave();
        Ok(())
    }

    fn wait(&self, milliseconds: u64) -> Result<(), Failure> {
        let timeout = Duration::from_millis(milliseconds);
        match self {
            Self::Port(port) => exclusive("port", port)?.wait(timeout),
            _ => self.as_thread()?.wait(timeout),
        }
    }
}
