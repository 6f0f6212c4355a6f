//! Bit filters that clear bits as they set them; the Bloom filter is the one that clears none.

use echoless::{Filter, FilterSpec};
use echoless_papers::theory::biased::{
    RSBF_FILL_LIMIT, bsbf_fill_after, bsbf_fill_limit, bsbfsd_fill_after, bsbfsd_fill_limit,
    rlbsbf_fill_after, rlbsbf_fill_limit, rsbf_fill_after,
};
use echoless_papers::theory::bloom;

use crate::trial::fresh_keys;

/// The fill after so many arrivals at k filters of so many bits.
type FillAfter = fn(u32, u64, u64) -> f64;

#[test]
fn the_fill_of_the_filter_follows_the_dynamics() {
    let bloom: FillAfter = |hashes, size, keys| bloom::fill(hashes, keys, u64::from(hashes) * size);
    let rsbf: FillAfter = |_, size, arrivals| rsbf_fill_after(size, arrivals);
    for hashes in [1, 2, 3] {
        for (name, fill_after, limit) in [
            ("bloom:", bloom, 1.0),
            ("bsbf:", bsbf_fill_after, bsbf_fill_limit(hashes)),
            ("bsbfsd:", bsbfsd_fill_after, bsbfsd_fill_limit(hashes)),
            ("rlbsbf:", rlbsbf_fill_after, rlbsbf_fill_limit(hashes)),
            ("rsbf:as=tabled,", rsbf, RSBF_FILL_LIMIT),
        ] {
            let size = 40_000;
            let bytes = u64::from(hashes) * size / 8;
            let text = format!("{name}k={hashes},memory={bytes},seed=3");
            let spec: FilterSpec = echoless_papers::parse(&text).expect("a valid specification");
            let mut filter = spec.build().expect("small");
            let fill = |filter: &dyn Filter| filter.report().fill().expect("bits");
            let mut arrivals = 0;
            for (key, arrival) in fresh_keys(20 * size).zip(1..) {
                filter.observe_one(key);
                arrivals = arrival;
                if [size / 4, size, 4 * size].contains(&arrivals) {
                    let expected = fill_after(hashes, size, arrivals);
                    let fill = fill(&*filter);
                    assert!(
                        (fill - expected).abs() < 0.01,
                        "{name} k {hashes} at {arrivals}: {fill}, expected {expected}"
                    );
                }
            }
            let end = fill_after(hashes, size, arrivals);
            // A fill that tends to 1 does so too slowly for this stream.
            assert!(
                limit == 1.0 || (end - limit).abs() < 0.01,
                "{name} k {hashes}: {end}"
            );
            assert!((fill(&*filter) - end).abs() < 0.01, "{name} k {hashes}");
        }
    }
}
