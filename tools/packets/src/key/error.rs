//! Rejected options of a key.

use thiserror::Error;

/// A rejected option, in the form of all errors of the project.
///
/// # Examples
/// ```
/// use echoless_packets::key::FieldSet;
/// let error = "ttl,colour".parse::<FieldSet>().unwrap_err();
/// assert!(error.to_string().starts_with("invalid ignore=colour: expected capture-header, mac, "));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("invalid {option}={value}: expected {allowed}")]
pub struct KeyError {
    /// The name of the option.
    pub option: &'static str,
    /// The rejected value.
    pub value: String,
    /// The values that are accepted, as a phrase that follows "expected".
    pub allowed: String,
}

impl KeyError {
    pub(super) fn new(
        option: &'static str,
        value: impl ToString,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            option,
            value: value.to_string(),
            allowed: allowed.into(),
        }
    }
}
