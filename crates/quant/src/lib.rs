//! Codecs for every ggml block format.
//!
//! Tensor data consists of rows of blocks. A block stores a fixed number of weights as packed
//! integers and scales. [`encode_row`] quantizes a row of floats to any type and [`decode_row`]
//! dequantizes it:
//!
//! ```
//! use gguf::TensorType;
//! use gguf_quant::{decode_row, encode_row};
//!
//! let row: Vec<f32> = (0..256).map(|i| (i as f32 / 10.0).sin()).collect();
//! let bytes = TensorType::Q4_K.byte_len(&[256]).expect("256 elements are one block");
//! let mut block = vec![0; bytes as usize];
//! encode_row(TensorType::Q4_K, &row, None, &mut block)?;
//! assert_eq!(block.len(), 144);
//!
//! let mut decoded = vec![0.0; 256];
//! decode_row(TensorType::Q4_K, &block, &mut decoded)?;
//! assert!(row.iter().zip(&decoded).all(|(a, b)| (a - b).abs() < 0.1));
//! # Ok::<(), gguf_quant::CodecError>(())
//! ```
//!
//! The bytes are identical to those of llama.cpp's encoder on every machine. [`Codec`] encodes and
//! decodes many rows at once. [`find_bad_block`] detects NaN and infinity in encoded data,
//! [`difference()`] computes error metrics between two encodings, [`block_layout()`] describes the
//! bits of a block, [`quant_grid()`] lists the values that a block can represent, and [`lossless`]
//! converts between types without changing any weight.

mod bits;
mod block;
mod blocks;
mod codec;
mod difference;
mod dispatch;
mod finite;
mod fp16;
mod grids;
pub mod integers;
mod lanes;
mod layout;
pub mod lossless;
mod quant_grid;
mod registry;
mod search;
mod value_tables;

pub use codec::{BadBlock, Codec, CodecError};
pub use difference::{Difference, difference};
pub use dispatch::InstructionSet;
pub use layout::{BlockLayout, Field, FieldItem, FieldKind};
pub use quant_grid::{BlockParams, GridShift, QuantGrid, SignPattern, has_quant_grid, quant_grid};
pub use registry::{block_layout, codec, decode_row, encode_row, find_bad_block};
