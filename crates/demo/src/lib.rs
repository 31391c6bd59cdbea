//! A small trained language model, part of the program that shows itself with it.
//!
//! Tiny KJV Llama 4M: a llama of 4.2 million parameters, trained on the King James Bible, as a Hugging
//! Face checkpoint. Its `README.md` says more.

#![deny(missing_docs)]

/// What a directory of the checkpoint is called.
pub const NAME: &str = "Tiny-KJV-Llama-4M";

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../Tiny-KJV-Llama-4M/", $name)).as_slice())
    };
}

/// The files of the checkpoint: name and bytes.
///
/// ```
/// let (name, bytes) = gguf_demo::FILES[0];
/// assert_eq!(name, "config.json");
/// assert!(bytes.starts_with(b"{"));
/// ```
pub const FILES: [(&str, &[u8]); 6] = [
    file!("config.json"),
    file!("generation_config.json"),
    file!("model.safetensors"),
    file!("README.md"),
    file!("tokenizer.model"),
    file!("tokenizer_config.json"),
];
