//! Tiny KJV Llama 4M: a Llama model of 4.2 million parameters as a Hugging Face checkpoint, embedded for `gguf demo`.

/// Directory name of the checkpoint.
pub const NAME: &str = "Tiny-KJV-Llama-4M";

macro_rules! file {
    ($name:literal) => {
        ($name, include_bytes!(concat!("../../../testdata/Tiny-KJV-Llama-4M/", $name)).as_slice())
    };
}

/// Name and content of each file of the checkpoint.
pub const FILES: [(&str, &[u8]); 6] = [
    file!("config.json"),
    file!("generation_config.json"),
    file!("model.safetensors"),
    file!("README.md"),
    file!("tokenizer.model"),
    file!("tokenizer_config.json"),
];
