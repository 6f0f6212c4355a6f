//! The public behaviour of the crate: framing, layers and keys.

mod conditions;
mod framing;
mod framing_errors;
mod groups;
mod masks;
mod model;
mod mutations;
mod options;
mod oracles;
mod properties;
mod real_data;
mod shortened;
mod snap;
mod support;
mod tshark;
mod tunnels;
