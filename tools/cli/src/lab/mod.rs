//! What `eval` and `plan` share: the stream they run on and the outputs they write to.

pub(crate) mod input;
pub(crate) mod output;
