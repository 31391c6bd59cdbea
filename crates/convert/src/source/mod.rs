//! Where foreign tensors come from: each module yields tensors lazily.

pub mod safetensors;
