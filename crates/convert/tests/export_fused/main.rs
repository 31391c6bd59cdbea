//! There and back, of families whose tensors are fused, and of encoders.

mod decoders;
mod encoders;
mod quantized;
#[path = "../there_and_back/mod.rs"]
mod there_and_back;
#[path = "../tiny/mod.rs"]
mod tiny;

/// Names and shapes, slowest dimension first.
type Tensors<'a> = &'a [(&'a str, &'a [usize])];
