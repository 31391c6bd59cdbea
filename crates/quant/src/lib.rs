//! Codecs for every ggml block format.
//!
//! A tensor's data is rows of blocks: a fixed number of weights, packed with what is needed to get
//! them back. [`encode_row`] turns a row of floats into blocks of any type, [`decode_row`] turns
//! them back into floats:
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
//! The bytes are those that llama.cpp's encoder writes, on every machine. [`Codec`] does the same
//! for many rows at once. [`find_bad_block`] looks for data that cannot be decoded to numbers,
//! [`difference()`] says how far two encodings are apart, [`layout()`] what the bits of a block mean, and [`lossless`] goes from one type to
//! another where no weight changes.

mod bits;
mod block;
mod blocks;
mod by_type;
mod codec;
mod difference;
mod dispatch;
mod finite;
mod form;
mod grids;
mod halves;
pub mod integers;
mod lanes;
mod layout;
pub mod lossless;
mod search;

pub use by_type::{codec, decode_row, encode_row, find_bad_block};
pub use codec::{BadBlock, Codec, CodecError};
pub use difference::{Difference, difference};
pub use dispatch::InstructionSet;
pub use form::{Form, Numbers, Shift, Signs, form, has_form};
pub use layout::{Field, Item, Kind, Layout, layout};
