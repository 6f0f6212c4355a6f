//! Compressed inputs and outputs: gzip, zstd, lz4, bzip2 and xz, and inputs in lzma and lzip.
//!
//! An input is compressed if it begins with the signature of a [`codec`]. The [`reader`] returns
//! plain bytes either way; decompression runs on a thread of its own (`decompressor`), or on
//! several (`frame_decoders`), and so does the compression of an output ([`compressor`],
//! `frame_encoders`).

pub mod codec;
pub mod compressor;
mod decoder;
mod decompressor;
mod encoder;
mod extent;
mod frame_decoders;
mod frame_encoders;
pub mod length;
mod lz4;
pub mod reader;
