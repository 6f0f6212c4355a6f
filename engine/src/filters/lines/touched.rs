//! Which lines may hold keys, as long as they are few: the sweep of a new era then passes over
//! these lines instead of the whole memory.
//!
//! A stream with long silences, such as a few records a day under a window of seconds, enters a new
//! era with every record. A sweep of 256 MiB for each would take tens of milliseconds.

use crate::hash::KeyHash;
use crate::kernels::{Bucket, LineRange};
use crate::memory::Line;

/// The most lines that are noted one by one.
const MOST: usize = 1024;

/// The lines that may hold keys.
#[derive(Debug)]
pub(super) enum Touched {
    /// At most these, by their position; a line can be in it twice.
    Few(Vec<usize>),
    /// Any line.
    Many,
}

impl Touched {
    /// No line.
    pub(super) const fn none() -> Self {
        Self::Few(Vec::new())
    }

    /// Notes the lines of a batch of keys in buckets `B`.
    #[inline]
    pub(super) fn note<B: Bucket>(&mut self, range: LineRange, keys: &[KeyHash]) {
        let Self::Few(lines) = self else { return };
        if lines.len() + keys.len() * B::KEY_LINES <= MOST {
            for key in keys {
                B::for_each_line(range.position(*key), *key, |line| lines.push(line));
            }
        } else {
            *self = Self::Many;
        }
    }

    /// Applies `expire` to every line that holds keys, and notes those that are not empty
    /// afterwards.
    pub(super) fn sweep(&mut self, lines: &mut [Line], mut expire: impl FnMut(&mut Line)) {
        if let Self::Few(few) = self {
            few.sort_unstable();
            few.dedup();
            few.retain(|position| {
                let line = &mut lines[*position];
                expire(line);
                *line != Line::EMPTY
            });
            return;
        }
        let mut left = Self::none();
        for (position, line) in lines.iter_mut().enumerate() {
            if !line.differs_from(&Line::EMPTY) {
                continue;
            }
            expire(line);
            if let Self::Few(few) = &mut left
                && line.differs_from(&Line::EMPTY)
            {
                few.push(position);
                if few.len() > MOST {
                    left = Self::Many;
                }
            }
        }
        *self = left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::{Page, PageKey};

    fn lines_of(touched: &Touched) -> Option<&[usize]> {
        match touched {
            Touched::Few(lines) => Some(lines),
            Touched::Many => None,
        }
    }

    #[test]
    fn both_lines_of_a_key_in_a_page_are_swept() {
        let range = LineRange {
            total: 4096,
            first: 0,
        };
        let mut touched = Touched::none();
        let key = KeyHash(0x1234_5678_9abc_def0);
        touched.note::<Page>(range, &[key]);
        let home = range.position(key);
        let mut lines = [home, home ^ PageKey::new(key).step];
        lines.sort_unstable();
        let mut swept = vec![Line([1; 8]); 4096];
        touched.sweep(&mut swept, |line| line.0[0] = 2);
        assert_eq!(lines_of(&touched), Some(&lines[..]));
        assert!(lines.iter().all(|line| swept[*line].0[0] == 2));
    }

    #[test]
    fn few_lines_are_swept_alone_and_many_all() {
        let mut lines = vec![Line([1; 8]); 4096];
        let range = LineRange {
            total: 4096,
            first: 0,
        };
        let mut touched = Touched::none();
        let keys: Vec<KeyHash> = (0..600).map(|key| KeyHash(KeyHash(key).remix(1))).collect();
        touched.note::<Line>(range, &keys);
        let mut swept = 0;
        touched.sweep(&mut lines, |_| swept += 1);
        // They still hold something, so they stay noted, each once.
        let noted = lines_of(&touched).unwrap().len();
        assert!(swept == noted && noted <= 600, "{swept} {noted}");
        touched.note::<Line>(range, &keys);
        assert_eq!(lines_of(&touched), None);
        let mut swept = 0;
        touched.sweep(&mut lines, |line| {
            swept += 1;
            *line = if swept == 18 { *line } else { Line::EMPTY };
        });
        assert_eq!((swept, lines_of(&touched)), (4096, Some(&[17][..])));
        touched.sweep(&mut lines, |line| *line = Line::EMPTY);
        assert_eq!(lines_of(&touched), Some(&[][..]));
        // More than a thousand lines that hold keys are not noted one by one.
        lines.fill(Line([1; 8]));
        touched = Touched::Many;
        touched.sweep(&mut lines, |_| ());
        assert_eq!(lines_of(&touched), None);
    }
}
