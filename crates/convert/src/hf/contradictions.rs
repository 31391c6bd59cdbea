//! Fields of config.json that contradict the tensors of the checkpoint.

use gguf_checkpoint::config::Config;
use gguf_models::convert::Converter;
use gguf_pipeline::Tensor;

const OUTPUT: &str = "output.weight";
const EMBEDDING: &str = "token_embd.weight";

/// Architectures whose attention always has biases of queries, keys and values.
const WITH_BIASES: [&str; 4] = ["qwen", "qwen2", "qwen2moe", "qwen2vl"];

/// Number of rows that are compared to tell two matrices apart.
const SAMPLED_ROWS: u64 = 64;

/// Flags as config.json states them, before defaults are filled in.
pub(super) struct StatedFlags {
    is_tied: Option<bool>,
    has_attention_bias: Option<bool>,
}

impl StatedFlags {
    pub fn of(config: &Config) -> Self {
        let flag = |name| config.bool(name).ok().flatten();
        Self { is_tied: flag("tie_word_embeddings"), has_attention_bias: flag("attention_bias") }
    }

    /// Returns notes that say which side of a contradiction the converted model has.
    pub fn contradictions(
        &self,
        converter: &'static dyn Converter,
        tensors: &[Tensor],
    ) -> Vec<String> {
        let tensor = |name: &str| tensors.iter().find(|tensor| tensor.name == name);
        let mut notes = Vec::new();
        match (self.is_tied, tensor(OUTPUT), tensor(EMBEDDING)) {
            (Some(false), None, Some(_)) if has_output(converter) => notes.push(
                "`tie_word_embeddings` is false, but the checkpoint has no output matrix: the converted model uses the \
                 token embedding"
                    .to_owned(),
            ),
            (Some(true), Some(output), Some(embedding)) if differ(output, embedding) => notes.push(
                "`tie_word_embeddings` is true, but the checkpoint has another output matrix: the converted model has \
                 it, `transformers` ignores it"
                    .to_owned(),
            ),
            _ => {}
        }
        let has_biases = tensors.iter().any(|tensor| {
            ["attn_q.bias", "attn_qkv.bias", "attn_output.bias"]
                .iter()
                .any(|end| tensor.name.ends_with(end))
        });
        let has_attention = tensors.iter().any(|tensor| tensor.name.contains(".attn_q"));
        if has_attention && !has_biases {
            if self.has_attention_bias == Some(true) {
                notes.push(
                    "`attention_bias` is true, but the checkpoint has no such biases: they count as 0"
                        .to_owned(),
                );
            } else if WITH_BIASES.contains(&converter.architecture()) {
                notes.push(
                    "the checkpoint has no biases of queries, keys and values, which models of this class have: they \
                     count as 0"
                        .to_owned(),
                );
            }
        }
        notes
    }
}

fn has_output(converter: &'static dyn Converter) -> bool {
    let schema = gguf_models::schema::architecture(converter.architecture());
    schema.is_some_and(|schema| schema.tensor_names().any(|(name, _)| name == OUTPUT))
}

/// Whether two matrices differ in shape, or in rows spread over them. Matrices of different types are not compared.
fn differ(a: &Tensor, b: &Tensor) -> bool {
    if a.shape != b.shape {
        return true;
    }
    if a.stored_type != b.stored_type {
        return false;
    }
    let rows: u64 = a.shape.iter().skip(1).product();
    let step = (rows / SAMPLED_ROWS).max(1);
    let (mut one, mut other) = (Vec::new(), Vec::new());
    (0..rows).step_by(usize::try_from(step).unwrap_or(usize::MAX)).any(|row| {
        let read = a.read_rows(row, 1, &mut one).and(b.read_rows(row, 1, &mut other));
        // An unreadable row is an error of the conversion itself.
        read.is_ok() && one != other
    })
}
