//! Writes the hyperparameter keys of each architecture.

use gguf::{Error, Metadata};

use super::blocks::SuperBlock;
use super::file::LegacyFile;
use super::header::{Field, ModelFamily};
use super::overrides::Hyperparameters;
use super::tensor::LegacyTensor;

/// Looks up tensor shapes by GGUF tensor name.
pub(super) struct Shapes<'t>(pub &'t [LegacyTensor]);

impl Shapes<'_> {
    /// Number of rows of a matrix.
    fn rows(&self, name: &str) -> Option<u32> {
        let tensor = self.0.iter().find(|tensor| tensor.name == name)?;
        u32::try_from(*tensor.joined.dims.get(1)?).ok()
    }
}

/// Sets `<architecture>.*`. The feed-forward length and the number of KV heads follow from the
/// tensor shapes.
pub(super) fn write(
    file: &LegacyFile,
    architecture: &'static str,
    params: &Hyperparameters,
    shapes: &Shapes,
    metadata: &mut Metadata,
) -> Result<(), Error> {
    let header = &file.header;
    let mut keys = Keys { architecture, metadata };
    // The layout has these fields.
    let get = |field| header.get(field).unwrap_or(0);
    let rows = |name: &str| {
        shapes.rows(name).ok_or_else(|| {
            let what = format!("tensor `{name}` is missing");
            Error::input(
                "legacy-damaged",
                &file.path,
                what,
                "the file is incomplete; download it again",
            )
        })
    };
    let family = file.layout.family;
    if family == ModelFamily::Whisper {
        use Field::{
            AudioBlocks, AudioContext, AudioHeads, AudioWidth, TextBlocks, TextContext, TextHeads,
            TextWidth,
        };
        for (side, up, [context, width, heads, blocks]) in [
            (
                "encoder",
                "enc.blk.0.ffn_up.weight",
                [AudioContext, AudioWidth, AudioHeads, AudioBlocks],
            ),
            ("decoder", "dec.blk.0.ffn_up.weight", [TextContext, TextWidth, TextHeads, TextBlocks]),
        ] {
            keys.set(&format!("{side}.context_length"), get(context));
            keys.set(&format!("{side}.embedding_length"), get(width));
            keys.set(&format!("{side}.feed_forward_length"), rows(up)?);
            keys.set(&format!("{side}.block_count"), get(blocks));
            keys.set(&format!("{side}.attention.head_count"), get(heads));
        }
        keys.set("encoder.mels_count", get(Field::Mels));
        keys.set("vocab_size", get(Field::VocabSize));
        return Ok(());
    }

    let feed_forward = rows("blk.0.ffn_up.weight")?;
    keys.set("context_length", params.context_length);
    if family == ModelFamily::Falcon {
        keys.set("tensor_data_layout", "jploski");
    }
    keys.set("embedding_length", get(Field::Width));
    keys.set("block_count", get(Field::Blocks));
    keys.set("feed_forward_length", feed_forward);
    match family {
        ModelFamily::Llama => keys.set("rope.dimension_count", get(Field::Width) / params.heads),
        ModelFamily::GptJ | ModelFamily::GptNeox => {
            keys.set("rope.dimension_count", get(Field::RotaryDims));
        }
        _ => {}
    }
    keys.set("attention.head_count", params.heads);
    match family {
        ModelFamily::Llama => {
            let kv = rows("blk.0.attn_k.weight")?;
            keys.set("attention.head_count_kv", kv_heads(file, params, kv)?);
        }
        ModelFamily::Falcon => keys.set("attention.head_count_kv", get(Field::KvHeads)),
        ModelFamily::Bloom => keys.set("attention.head_count_kv", params.heads),
        ModelFamily::Gpt2 if architecture == "starcoder" => {
            keys.set("attention.head_count_kv", 1u32)
        }
        _ => {}
    }
    let epsilon = match family {
        ModelFamily::Llama => "attention.layer_norm_rms_epsilon",
        _ => "attention.layer_norm_epsilon",
    };
    keys.set(epsilon, params.epsilon);
    match family {
        ModelFamily::GptNeox => {
            keys.set("use_parallel_residual", header.get(Field::ParallelResidual) != Some(0));
        }
        ModelFamily::Mpt | ModelFamily::Replit => {
            let integer = header.get(Field::AlibiMaxInt).map(|max| max as f32);
            let max = header.f32(Field::AlibiMax).or(integer).unwrap_or(8.0);
            keys.set("attention.max_alibi_bias", max);
            if let Some(clip) = header.f32(Field::QkvClamp).filter(|clip| *clip > 0.0) {
                keys.set("attention.clamp_kqv", clip);
            }
        }
        _ => {}
    }
    if let Some(base) = params.rope_base {
        keys.set("rope.freq_base", base);
    }
    Ok(())
}

struct Keys<'m> {
    architecture: &'static str,
    metadata: &'m mut Metadata,
}

impl Keys<'_> {
    fn set(&mut self, key: &str, value: impl Into<gguf::Value>) {
        self.metadata.set(format!("{}.{key}", self.architecture), value);
    }
}

/// Number of KV heads, which the llama header does not store: from the rows of the key projection.
fn kv_heads(file: &LegacyFile, params: &Hyperparameters, rows: u32) -> Result<u32, Error> {
    let head = file.header.get(Field::Width).unwrap_or(0) / params.heads;
    let count = rows.checked_div(head).unwrap_or(0);
    if count == 0 || !rows.is_multiple_of(head) || !params.heads.is_multiple_of(count) {
        let what = format!("{rows} rows of the key projection do not fit a head size of {head}");
        let help = "pass the correct number of heads with --head-count";
        return Err(Error::input("legacy-head-count", &file.path, what, help));
    }
    if params.gqa.is_some_and(|gqa| gqa.checked_mul(count) != Some(params.heads)) {
        let what = format!("the tensors have {} heads and {count} KV heads", params.heads);
        let help = "remove --gqa: the number follows from the tensors";
        return Err(Error::request("option-contradicts", what, help));
    }
    Ok(count)
}

/// Notes about unusual header values.
pub(super) fn notes(file: &LegacyFile, params: &Hyperparameters) -> Vec<String> {
    let mut notes = Vec::new();
    let rotary = file.header.get(Field::Width).unwrap_or(0) / params.heads;
    if let (ModelFamily::Llama, Some(stored)) =
        (file.layout.family, file.header.get(Field::RotaryDims))
        && stored != rotary
    {
        notes.push(format!(
            "the header states {stored} rotary dimensions per head; using all {rotary}"
        ));
    }
    if file.super_block == SuperBlock::Elements64 {
        notes.push("super-blocks of 64 elements, which no current type has".to_owned());
    }
    notes
}

/// Name of the file type, for `general.description`.
pub(super) fn mix_name(file: &LegacyFile) -> String {
    let number = file.header.file_type();
    // Model families other than llama store the number of the K-quant type, not of a mix.
    let name = match (file.layout.family, number) {
        (_, 0) => return "ALL_F32".to_owned(),
        (_, 4) => "Q4_1_SOME_F16".to_owned(),
        (ModelFamily::Llama, number) => gguf::file_type(number.into())
            .map_or_else(|| number.to_string(), |row| row.name.to_owned()),
        (_, number @ 10..=14) => gguf::TensorType::from_id(number).to_string(),
        (_, number) => gguf::file_type(number.into())
            .map_or_else(|| number.to_string(), |row| row.name.to_owned()),
    };
    format!("MOSTLY_{name}")
}
