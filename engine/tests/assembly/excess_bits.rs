//! A filter from outside the library may set bits past the last key. No verdict and no count shows
//! them.

use echoless::{
    Batch, Engine, Filter, KeyHash, OrderedFilter, Partitioned, Partitioning, Tally, Verdict,
    Verdicts,
};

/// Sets every bit of every word.
struct SetsAllBits;

impl Filter for SetsAllBits {
    fn observe_batch(&mut self, _: Batch<'_>, duplicates: &mut [u64]) {
        duplicates.fill(u64::MAX);
    }

    fn contains(&self, _: KeyHash) -> bool {
        true
    }

    fn clear(&mut self) {}

    fn tally(&self) -> Tally {
        Tally::default()
    }
}

const KEY: KeyHash = KeyHash::from_uniform(0);

#[test]
fn verdicts_end_with_the_last_key() {
    let mut verdicts = Verdicts::new();
    assert_eq!(SetsAllBits.observe_one(KEY), Verdict::Duplicate);
    for len in [200, 0, 1, 63, 64, 65, 128] {
        SetsAllBits.observe(&vec![KEY; len], &mut verdicts);
        assert_eq!(verdicts.count_duplicates(), len as u64);
        assert!(verdicts.iter().all(Verdict::is_duplicate), "{len}");
        assert_eq!(verdicts.iter().count(), len);
        assert!(verdicts.duplicates().eq(0..len));
    }
}

#[test]
fn an_engine_does_not_count_them() {
    let whole = Partitioned::new(Partitioning::new(1, 1).unwrap(), vec![SetsAllBits]).unwrap();
    let (engine, mut ports) = Engine::builder(whole).build().unwrap();
    let mut verdicts = Verdicts::new();
    let mut observed = 0;
    for keys in [1, 63, 64, 65, 200] {
        ports[0].observe(&vec![KEY; keys], &mut verdicts).unwrap();
        observed += keys as u64;
        assert_eq!(verdicts.count_duplicates(), keys as u64);
        let counts = engine.counts();
        assert_eq!((counts.judged, counts.duplicates), (observed, observed));
    }
}

#[test]
fn an_ordered_filter_does_not_count_them() {
    // Few partitions, and so many that their keys are sorted.
    for partitions in [1, 2, 5, 8] {
        let partitioning = Partitioning::new(8, partitions).unwrap();
        let filters = (0..partitions).map(|_| SetsAllBits).collect();
        let whole = Partitioned::new(partitioning, filters).unwrap();
        let filter = OrderedFilter::builder(whole).build();
        let (mut handle, mut verdicts) = (filter.handle(), Verdicts::new());
        let mut observed = 0;
        for keys in [1, 63, 64, 65, 200] {
            let batch = vec![KEY; keys];
            handle.observe(&batch, &mut verdicts).unwrap();
            assert_eq!(verdicts.count_duplicates(), keys as u64);
            let ticks: Vec<u64> = (0..keys as u64).collect();
            let ticket = handle.ticket();
            let batch = Batch::at_each(&batch, &ticks);
            ticket.observe(batch, &mut verdicts).unwrap();
            assert_eq!(verdicts.count_duplicates(), keys as u64);
            observed += 2 * keys as u64;
            let counts = filter.counts();
            assert_eq!((counts.judged, counts.duplicates), (observed, observed));
        }
    }
}
