//! Exact buffers that guess on a miss (paper 004, section 5.2).

/// The FPR and FNR of `FPBuffering`, given the FNR of the plain LRU buffer: (q, (1 - q) FNR), q
/// being the probability that a miss is answered "duplicate".
///
/// Simulations agree within 0.01.
///
/// # Examples
/// ```
/// assert_eq!(echoless_papers::theory::buffers::guessing_rates(0.25, 0.5), (0.25, 0.375));
/// ```
#[must_use]
pub fn guessing_rates(guess: f64, lru_fnr: f64) -> (f64, f64) {
    (guess, (1.0 - guess) * lru_fnr)
}
