//! Vocabularies that many models share, recognized by tokens at fixed ids, and facts about them.

use gguf::Metadata;
use gguf_models::pre_tokenizer;

/// A vocabulary that many models share.
pub(crate) struct Family {
    /// Name, as in messages.
    pub name: &'static str,
    /// Ids and texts of tokens that only this vocabulary has.
    marks: &'static [(usize, &'static str)],
    /// Names of the right pre-tokenizers, with their aliases; empty if the vocabulary has none.
    pre: &'static [&'static str],
    /// Whether the models were trained with BOS before every text; `None` if they differ.
    pub adds_bos: Option<bool>,
    /// Architecture and base frequency of RoPE of the models that have no other; `None` if they differ.
    pub rope_base: Option<(&'static str, f32)>,
}

#[rustfmt::skip]
const FAMILIES: &[Family] = &[
    Family { name: "Llama 3", marks: &[(128_000, "<|begin_of_text|>"), (128_006, "<|start_header_id|>"), (128_009, "<|eot_id|>")],
        pre: &["llama-bpe", "dbrx"], adds_bos: Some(true), rope_base: Some(("llama", 500_000.0)) },
    Family { name: "Qwen 2", marks: &[(151_643, "<|endoftext|>"), (151_644, "<|im_start|>"), (151_645, "<|im_end|>")],
        pre: &["qwen2", "stablelm2", "qwen35"], adds_bos: Some(false), rope_base: None },
    Family { name: "Phi-3", marks: &[(1, "<s>"), (32_000, "<|endoftext|>"), (32_007, "<|end|>")],
        pre: &[], adds_bos: None, rope_base: None },
    Family { name: "Llama 2", marks: &[(1, "<s>"), (2, "</s>"), (260, "\u{2581}t"), (29_871, "\u{2581}")],
        pre: &[], adds_bos: Some(true), rope_base: None },
    Family { name: "Gemma", marks: &[(1, "<eos>"), (2, "<bos>"), (3, "<unk>"), (106, "<start_of_turn>")],
        pre: &[], adds_bos: Some(true), rope_base: None },
    Family { name: "Gemma 3", marks: &[(1, "<eos>"), (2, "<bos>"), (3, "<unk>"), (105, "<start_of_turn>")],
        pre: &[], adds_bos: Some(true), rope_base: None },
    Family { name: "DeepSeek-V3", marks: &[(0, "<\u{ff5c}begin\u{2581}of\u{2581}sentence\u{ff5c}>"), (128_803, "<\u{ff5c}User\u{ff5c}>")],
        pre: &["deepseek-v3"], adds_bos: None, rope_base: None },
    Family { name: "DeepSeek LLM", marks: &[(100_000, "<\u{ff5c}begin\u{2581}of\u{2581}sentence\u{ff5c}>")],
        pre: &["deepseek-llm"], adds_bos: None, rope_base: None },
    Family { name: "DeepSeek Coder", marks: &[(32_013, "<\u{ff5c}begin\u{2581}of\u{2581}sentence\u{ff5c}>")],
        pre: &["deepseek-coder"], adds_bos: None, rope_base: None },
    Family { name: "o200k", marks: &[(199_998, "<|startoftext|>"), (199_999, "<|endoftext|>"), (200_002, "<|return|>")],
        pre: &["gpt-4o"], adds_bos: None, rope_base: None },
    Family { name: "Command-R", marks: &[(5, "<BOS_TOKEN>"), (255_001, "<|END_OF_TURN_TOKEN|>")],
        pre: &["command-r"], adds_bos: Some(true), rope_base: None },
    Family { name: "Falcon", marks: &[(11, "<|endoftext|>"), (0, ">>TITLE<<"), (1, ">>ABSTRACT<<")],
        pre: &["falcon"], adds_bos: None, rope_base: None },
];

impl Family {
    /// Returns the family whose tokens a file has; `None` if it is of another one.
    pub fn of(metadata: &Metadata) -> Option<&'static Self> {
        let mut texts = metadata.array("tokenizer.ggml.tokens")?.strings()?;
        let mut ids: Vec<usize> =
            FAMILIES.iter().flat_map(|family| family.marks).map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        // One pass over the vocabulary: `next` is the id of the next text.
        let mut next = 0;
        let mut found = Vec::new();
        for id in ids {
            let Some(text) = texts.nth(id - next) else { break };
            next = id + 1;
            found.push((id, text));
        }
        let has = |(id, mark): &(usize, &str)| found.contains(&(*id, mark.as_bytes()));
        FAMILIES.iter().find(|family| family.marks.iter().all(has))
    }

    /// Returns the name of the right pre-tokenizer; `None` if the vocabulary has none.
    pub fn pre(&self) -> Option<&'static str> {
        self.pre.first().copied()
    }

    /// Whether a pre-tokenizer is right for the vocabulary.
    pub fn has_pre(&self, pre: &str) -> bool {
        self.pre.is_empty()
            || self.pre.iter().any(|name| pre_tokenizer::aliases(name).contains(&pre))
    }
}

#[cfg(test)]
mod tests {
    use gguf::Array;

    use super::*;

    #[test]
    fn pre_tokenizers_exist() {
        for family in FAMILIES {
            for name in family.pre {
                assert_eq!(pre_tokenizer::aliases(name).first(), Some(name), "{}", family.name);
            }
        }
    }

    #[test]
    fn a_family_is_recognized_by_its_tokens() {
        let mut tokens = vec![String::from("x"); 151_646];
        for (id, text) in FAMILIES[1].marks {
            tokens[*id] = (*text).to_owned();
        }
        let mut metadata = Metadata::new();
        metadata.set("tokenizer.ggml.tokens", Array::from_strings(&tokens));
        let family = Family::of(&metadata).unwrap();
        assert_eq!((family.name, family.pre()), ("Qwen 2", Some("qwen2")));
        assert!(family.has_pre("deepseek-r1-qwen") && !family.has_pre("llama-bpe"));
        tokens[151_645] = "y".into();
        metadata.set("tokenizer.ggml.tokens", Array::from_strings(&tokens));
        assert!(Family::of(&metadata).is_none());
    }
}
