//! Marks at moments, and how many lie between two of them.

/// A Fenwick tree of marks.
pub(crate) struct Marks {
    sums: Vec<u32>,
}

impl Marks {
    /// None, at moments up to `last`.
    pub(crate) fn none(last: usize) -> Self {
        Self {
            sums: vec![0; last + 1],
        }
    }

    pub(crate) fn set(&mut self, moment: usize) {
        self.add(moment, 1);
    }

    pub(crate) fn clear(&mut self, moment: usize) {
        self.add(moment, u32::MAX);
    }

    fn add(&mut self, moment: usize, value: u32) {
        let mut at = moment;
        while at < self.sums.len() {
            self.sums[at] = self.sums[at].wrapping_add(value);
            at += at & at.wrapping_neg();
        }
    }

    /// The number of marks after one moment, which is not 0, up to another one.
    pub(crate) fn between(&self, after: usize, up_to: usize) -> u64 {
        u64::from(self.up_to(up_to) - self.up_to(after))
    }

    fn up_to(&self, moment: usize) -> u32 {
        let (mut at, mut sum) = (moment, 0_u32);
        while at > 0 {
            sum = sum.wrapping_add(self.sums[at]);
            at &= at - 1;
        }
        sum
    }
}
