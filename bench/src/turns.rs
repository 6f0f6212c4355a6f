//! Measurements in turn, so that a busy period of the machine affects all candidates.

use crate::failure::Failure;

/// Measures each candidate in turn, in a round that only warms up and `rounds` more. Returns the
/// measurements of each candidate without the first one.
///
/// # Errors
/// The first one of a measurement.
pub(crate) fn measure_in_turn<C, M>(
    candidates: &mut [C],
    rounds: u64,
    mut measure: impl FnMut(&mut C) -> Result<M, Failure>,
) -> Result<Vec<Vec<M>>, Failure> {
    let mut measured: Vec<Vec<M>> = candidates.iter().map(|_| Vec::new()).collect();
    for round in 0..=rounds {
        for (candidate, measured) in candidates.iter_mut().zip(&mut measured) {
            let measurement = measure(candidate)?;
            if round > 0 {
                measured.push(measurement);
            }
        }
    }
    Ok(measured)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_take_turns_and_the_first_round_is_not_returned() {
        let mut order = Vec::new();
        let measured = measure_in_turn(&mut ['a', 'b'], 2, |candidate| {
            order.push(*candidate);
            Ok(order.len())
        });
        assert_eq!(measured.unwrap(), [[3, 5], [4, 6]]);
        assert_eq!(order, ['a', 'b', 'a', 'b', 'a', 'b']);
    }
}
