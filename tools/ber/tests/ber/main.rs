//! Framing and fields of records: against a plain model of BER trees, against the decoder of
//! another crate, and on damaged bytes.

mod container;
mod framing;
mod oracle;
mod select;
mod support;
