//! Paths that name slices: the checks of their steps, and the limit of a step.

use echoless::SpecError;

/// The most slices of one cut.
pub(super) const MOST_SLICES: u32 = 1 << 16;

/// Checks one step of a path.
///
/// # Errors
/// [`SpecError`] if `index` is not below `count`. It names the whole path.
pub(super) fn check_index(path: &[usize], index: usize, count: usize) -> Result<usize, SpecError> {
    if index < count {
        return Ok(index);
    }
    let allowed = format!("0 to {} in each place", count - 1);
    Err(SpecError::new("slice", path_text(path), allowed))
}

/// The error about a path of the wrong length.
pub(super) fn wrong_depth(path: &[usize], allowed: &str) -> SpecError {
    SpecError::new("slice", path_text(path), allowed)
}

fn path_text(path: &[usize]) -> String {
    let indices: Vec<String> = path.iter().map(usize::to_string).collect();
    indices.join("/")
}
