//! Integration tests of the scan.

mod benign;
mod checkpoints;
mod templates;

use gguf::{Array, Finding, Metadata, Severity};
use gguf_scan::scan_metadata;
use gguf_tokenizer::template::Renderer;

/// Template of ChatML.
pub const CHATML: &str = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] \
    + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}";

/// Returns a file with a template and a vocabulary of ChatML.
pub fn metadata(template: &str) -> Metadata {
    let mut metadata = Metadata::new();
    let tokens = ["<s>", "</s>", "<|im_start|>", "<|im_end|>", "a"];
    metadata.set("tokenizer.ggml.tokens", Array::from_strings(tokens));
    metadata.set("tokenizer.ggml.token_type", Array::from(&[3i32, 3, 3, 3, 1][..]));
    metadata.set("tokenizer.ggml.bos_token_id", 0u32);
    metadata.set("tokenizer.ggml.eos_token_id", 1u32);
    metadata.set("tokenizer.chat_template", template);
    metadata
}

/// Scans the metadata of a file.
pub fn scan(metadata: &Metadata) -> Vec<Finding> {
    scan_metadata(metadata, &Renderer::in_process()).unwrap()
}

/// Returns the codes of warnings and errors, each once.
pub fn codes(findings: &[Finding]) -> Vec<&'static str> {
    let loud = findings.iter().filter(|finding| finding.severity > Severity::Note);
    let mut codes: Vec<_> = loud.map(|finding| finding.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}
