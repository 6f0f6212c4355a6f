//! The public behaviour of the crate: framing, layers and keys.

mod conditions;
mod framing;
mod framing_errors;
mod groups;
mod links;
mod masks;
mod matrix;
mod model;
mod mutations;
mod options;
mod oracles;
mod properties;
mod real_data;
mod redundancy;
mod shortened;
mod skip;
mod snap;
mod support;
mod tshark;
mod tunnels;
