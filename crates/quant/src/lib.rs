//! Codecs for every ggml block format, and the recipes that choose a type per tensor.

pub mod recipe;
