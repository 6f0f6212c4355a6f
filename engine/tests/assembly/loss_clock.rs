//! The clock of a stream outlives the filters that are lost: a new one starts at it, also if the
//! next batches are late.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use echoless::{
    Batch, Engine, Filter, FilterSpec, KeyHash, KeyHasher, LineFilter, LossPolicy, OrderedFilter,
    OrderedHandle, Partitioning, Port, Verdicts,
};
use proptest::prelude::*;

use crate::breakable::{Breakable, breakable};

const WINDOW: u64 = 20;

/// The number of keys of a partition.
const KEYS: usize = 30;

type Part = Breakable<Box<dyn LineFilter>>;

/// What happens to a stream, in this order.
#[derive(Debug, Clone)]
struct Event {
    /// A lost partition gets a new filter.
    replaced: Option<usize>,
    /// The filter of a partition panics at this batch, if it has one.
    broken: Option<usize>,
    /// Whether the keys are looked up first, where that is possible.
    looked_up: bool,
    /// How far the tick of the batch is ahead of the clock; the batch is late if it is negative.
    step: i64,
    /// How far the ticks of the keys are ahead of that, if each key has its own, in turn.
    steps: Vec<i64>,
    /// Each number is a key in every partition, so that every partition gets the batch.
    numbers: Vec<usize>,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![
        3 => 0_i64..3,
        2 => 0..2 * WINDOW as i64,
        3 => -3 * WINDOW as i64..0,
        1 => Just(i64::MIN),
    ];
    let partition = || prop::option::weighted(0.3, 0_usize..3);
    let numbers = prop::collection::vec(0..KEYS, 1..6);
    let steps = prop::collection::vec(-2 * WINDOW as i64..2 * WINDOW as i64, 1..8);
    let event = (
        partition(),
        partition(),
        any::<bool>(),
        step,
        steps,
        numbers,
    );
    let event = event.prop_map(
        |(replaced, broken, looked_up, step, steps, numbers)| Event {
            replaced,
            broken,
            looked_up,
            step,
            steps,
            numbers,
        },
    );
    prop::collection::vec(event, 1..60)
}

/// The verdict bits of a batch, and which keys have none.
type Bits = (Vec<u64>, Vec<u64>);

fn bits(verdicts: &Verdicts) -> Bits {
    let unknown = verdicts.unknown().map(|index| index as u64).collect();
    (verdicts.words().to_vec(), unknown)
}

/// An assembly with lost partitions.
trait Losing {
    /// Whether each key of a batch has a tick of its own.
    const TICKS_OF_KEYS: bool;

    /// The verdicts of a look-up; none if it cannot look up.
    fn look_up(&mut self, _tick: u64, _keys: &[KeyHash]) -> Option<Bits> {
        None
    }
    fn observe(&mut self, ticks: &[u64], keys: &[KeyHash]) -> Bits;
    fn replace(&mut self, partition: usize, filter: Part);
}

struct ByEngine(Engine<Part>, Port);

impl Losing for ByEngine {
    const TICKS_OF_KEYS: bool = false;

    fn observe(&mut self, ticks: &[u64], keys: &[KeyHash]) -> Bits {
        let mut verdicts = Verdicts::new();
        self.1.submit_at(ticks[0], keys).unwrap();
        assert!(self.1.drain(&mut verdicts).unwrap());
        bits(&verdicts)
    }

    fn replace(&mut self, partition: usize, filter: Part) {
        self.0.replace(partition, filter).unwrap();
    }
}

struct ByTickets(OrderedFilter<Part>, OrderedHandle<Part>);

impl Losing for ByTickets {
    const TICKS_OF_KEYS: bool = true;

    fn look_up(&mut self, tick: u64, keys: &[KeyHash]) -> Option<Bits> {
        let mut verdicts = Verdicts::new();
        let mut ticket = self.1.ticket();
        let batch = Batch::at(keys, tick);
        ticket.contains_each(batch, &mut verdicts).unwrap();
        Some(bits(&verdicts))
    }

    fn observe(&mut self, ticks: &[u64], keys: &[KeyHash]) -> Bits {
        let mut verdicts = Verdicts::new();
        let ticket = self.1.ticket();
        let batch = Batch::at_each(keys, ticks);
        ticket.observe(batch, &mut verdicts).unwrap();
        bits(&verdicts)
    }

    fn replace(&mut self, partition: usize, filter: Part) {
        self.0.replace(partition, filter).unwrap();
    }
}

/// One filter for each partition, in the hands of one thread.
struct Model {
    filters: Vec<Option<Box<dyn LineFilter>>>,
    clock: u64,
}

impl Model {
    fn advance_to(&mut self, tick: u64) {
        self.clock = self.clock.max(tick);
        for filter in self.filters.iter_mut().flatten() {
            filter.advance_to(tick);
        }
    }

    /// The bits of a batch that has the keys of the partitions in turn, each at its tick.
    fn bits(
        &mut self,
        ticks: &[u64],
        keys: &[KeyHash],
        mut judge: impl FnMut(&mut dyn LineFilter, KeyHash) -> bool,
    ) -> Bits {
        let count = self.filters.len();
        let (mut words, mut unknown) = (vec![0; keys.len().div_ceil(64)], Vec::new());
        for (index, key) in keys.iter().enumerate() {
            self.advance_to(ticks[index]);
            match &mut self.filters[index % count] {
                Some(filter) => {
                    words[index / 64] |= u64::from(judge(&mut **filter, *key)) << (index % 64);
                }
                None => unknown.push(index as u64),
            }
        }
        (words, unknown)
    }
}

fn check<L: Losing>(
    events: &[Event],
    partitioning: &Partitioning,
    switches: &[Arc<AtomicBool>],
    mut subject: L,
) -> Result<(), TestCaseError> {
    let (parts, all_keys) = (partitioning.count(), keys_of(partitioning));
    let new = |part| spec().build_line_partition(part, parts).unwrap();
    let mut model = Model {
        filters: (0..parts).map(|part| Some(new(part))).collect(),
        clock: 0,
    };
    for event in events {
        let replaced = event.replaced.map(|partition| partition % parts);
        if let Some(partition) = replaced.filter(|part| model.filters[*part].is_none()) {
            let switch = Arc::clone(&switches[partition]);
            let inner = new(partition);
            subject.replace(partition, Breakable { inner, switch });
            let mut filter = new(partition);
            filter.advance_to(model.clock);
            model.filters[partition] = Some(filter);
        }
        let tick = model.clock.saturating_add_signed(event.step);
        let numbers = event.numbers.iter();
        let keys: Vec<KeyHash> = numbers
            .flat_map(|number| all_keys.iter().map(|of_part| of_part[*number]))
            .collect();
        if event.looked_up
            && let Some(found) = subject.look_up(tick, &keys)
        {
            let ticks = vec![tick; keys.len()];
            let expected = model.bits(&ticks, &keys, |filter, key| filter.contains(key));
            prop_assert_eq!(found, expected);
        }
        let broken = event.broken.map(|partition| partition % parts);
        if let Some(partition) = broken.filter(|part| model.filters[*part].is_some()) {
            switches[partition].store(true, Ordering::Relaxed);
            model.filters[partition] = None;
        }
        let steps = event.steps.iter().cycle().take(keys.len());
        let ticks: Vec<u64> = steps
            .map(|step| tick.saturating_add_signed(if L::TICKS_OF_KEYS { *step } else { 0 }))
            .collect();
        let expected = model.bits(&ticks, &keys, |filter, key| {
            filter.observe_one(key).is_duplicate()
        });
        prop_assert_eq!(subject.observe(&ticks, &keys), expected);
    }
    Ok(())
}

fn spec() -> FilterSpec {
    format!("stamped:window={WINDOW},memory=16KiB")
        .parse()
        .unwrap()
}

/// The first keys of each partition.
fn keys_of(partitioning: &Partitioning) -> Vec<Vec<KeyHash>> {
    let mut keys = vec![Vec::new(); partitioning.count()];
    for number in 0.. {
        let key = KeyHasher::seeded(0).hash_u64(number);
        keys[partitioning.partition_of(key)].push(key);
        if keys.iter().all(|of_part| of_part.len() >= KEYS) {
            break;
        }
    }
    keys
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn a_new_filter_starts_at_the_clock_of_the_stream(events in events(), parts in 1_usize..7) {
        let whole = spec().build_line_partitions(parts).unwrap();
        let partitioning = whole.partitioning().clone();
        let (filters, switches) = breakable(whole);
        let ordered = OrderedFilter::builder(filters).on_loss(LossPolicy::AsFresh).build();
        let handle = ordered.handle();
        check(&events, &partitioning, &switches, ByTickets(ordered, handle))?;

        let (filters, switches) = breakable(spec().build_line_partitions(parts).unwrap());
        let builder = Engine::builder(filters).on_loss(LossPolicy::AsFresh);
        let (engine, mut ports) = builder.build().unwrap();
        check(&events, &partitioning, &switches, ByEngine(engine, ports.remove(0)))?;
    }
}
