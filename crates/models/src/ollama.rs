//! Files of Ollama's own engine, which have vision tensors beside the text model, or names of their own
//! (`convert/` and `model/models/` of Ollama).

use gguf::Metadata;

/// Code of the finding.
pub const CODE: &str = "ollama-naming";

/// Advice of the finding.
pub const HELP: &str = "run it with Ollama; for other programs, fetch the model in llama.cpp's form (a text model \
                        and an mmproj file) or convert its checkpoint";

/// Architectures that only Ollama names so, with the names of llama.cpp.
const ARCHITECTURES: [(&str, &str); 3] =
    [("gptoss", "gpt-oss"), ("mllama", "no name"), ("qwen25vl", "qwen2vl")];

/// Prefixes of the tensors of encoders and projectors, which llama.cpp keeps in an mmproj file.
const ENCODER: [&str; 2] = ["v.", "mm."];

/// Returns what shows that a file was written for Ollama's own engine; `None` for other files.
pub fn sign<'t>(metadata: &Metadata, tensors: impl Iterator<Item = &'t str>) -> Option<String> {
    let architecture = metadata.architecture()?;
    let (mut has_text, mut of_encoder) = (false, None::<&str>);
    for tensor in tensors {
        has_text |= tensor == "token_embd.weight";
        if ENCODER.iter().any(|prefix| tensor.starts_with(prefix)) {
            // The same one, whatever the order of the tensors.
            of_encoder = Some(of_encoder.map_or(tensor, |other| other.min(tensor)));
        }
    }
    if !has_text {
        return None;
    }
    if let Some((own, other)) = ARCHITECTURES.iter().find(|(own, _)| *own == architecture) {
        return Some(format!("the architecture is {own}; llama.cpp has {other} for it"));
    }
    let key = format!("{architecture}.vision.block_count");
    match (of_encoder, metadata.get(&key)) {
        (Some(tensor), _) => {
            Some(format!("it holds a vision encoder beside the text model, such as `{tensor}`"))
        }
        (None, Some(_)) => Some(format!("it has the key `{key}`")),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_ollama_are_recognized() {
        let of = |architecture: &str, key: &str, tensors: &[&str]| {
            let mut metadata = Metadata::new();
            metadata.set("general.architecture", architecture);
            metadata.set(key, 2u32);
            sign(&metadata, tensors.iter().copied())
        };
        let text = "token_embd.weight";
        let vision = ["blk.0.attn_q.weight", text, "v.blk.0.attn_q.weight"];
        assert!(of("gemma3", "x", &vision).unwrap().contains("v.blk.0.attn_q.weight"));
        assert!(of("mistral3", "x", &[text, "mm.linear_1.weight"]).is_some());
        assert!(of("gemma3", "gemma3.vision.block_count", &[text]).unwrap().contains("vision"));
        assert!(of("gptoss", "x", &[text]).unwrap().contains("gpt-oss"));
        assert_eq!(of("gemma3", "gemma3.block_count", &[text]), None);
        assert_eq!(of("clip", "clip.vision.block_count", &vision[2..]), None);
    }
}
