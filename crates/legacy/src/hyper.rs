//! The keys of each architecture.

use gguf::{Error, Metadata};

use super::blocks::SuperBlock;
use super::given::Resolved;
use super::header::{Field, Program};
use super::read::OldFile;
use super::tensor::OldTensor;

/// Extents of tensors, by their names in a GGUF.
pub(super) struct Shapes<'t>(pub &'t [OldTensor]);

impl Shapes<'_> {
    /// Rows of a matrix.
    fn rows(&self, name: &str) -> Option<u32> {
        let tensor = self.0.iter().find(|tensor| tensor.name == name)?;
        u32::try_from(*tensor.whole.dims.get(1)?).ok()
    }
}

/// Sets `<architecture>.*`, with the feed-forward width and the number of key heads from the
/// tensors.
pub(super) fn write(
    old: &OldFile,
    architecture: &'static str,
    known: &Resolved,
    shapes: &Shapes,
    metadata: &mut Metadata,
) -> Result<(), Error> {
    let header = &old.header;
    let mut keys = Keys { architecture, metadata };
    // The form of the header has them.
    let get = |field| header.get(field).unwrap_or(0);
    let rows = |name: &str| {
        shapes.rows(name).ok_or_else(|| {
            let what = format!("has no tensor `{name}`");
            Error::input("legacy-damaged", &old.path, what, "the file is incomplete: get it again")
        })
    };
    let program = old.layout.program;
    if program == Program::Whisper {
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
        keys.set("vocab_size", get(Field::Vocabulary));
        return Ok(());
    }

    let feed_forward = rows("blk.0.ffn_up.weight")?;
    keys.set("context_length", known.context_length);
    if program == Program::Falcon {
        keys.set("tensor_data_layout", "jploski");
    }
    keys.set("embedding_length", get(Field::Width));
    keys.set("block_count", get(Field::Blocks));
    keys.set("feed_forward_length", feed_forward);
    match program {
        Program::Llama => keys.set("rope.dimension_count", get(Field::Width) / known.heads),
        Program::GptJ | Program::GptNeox => {
            keys.set("rope.dimension_count", get(Field::Rotary));
        }
        _ => {}
    }
    keys.set("attention.head_count", known.heads);
    match program {
        Program::Llama => {
            let kv = rows("blk.0.attn_k.weight")?;
            keys.set("attention.head_count_kv", key_heads(old, known, kv)?);
        }
        Program::Falcon => keys.set("attention.head_count_kv", get(Field::KeyHeads)),
        Program::Bloom => keys.set("attention.head_count_kv", known.heads),
        Program::Gpt2 if architecture == "starcoder" => keys.set("attention.head_count_kv", 1u32),
        _ => {}
    }
    let epsilon = match program {
        Program::Llama => "attention.layer_norm_rms_epsilon",
        _ => "attention.layer_norm_epsilon",
    };
    keys.set(epsilon, known.epsilon);
    match program {
        Program::GptNeox => {
            keys.set("use_parallel_residual", header.get(Field::Parallel) != Some(0));
        }
        Program::Mpt | Program::Replit => {
            let whole = header.get(Field::AlibiMaxWhole).map(|max| max as f32);
            let max = header.f32(Field::AlibiMax).or(whole).unwrap_or(8.0);
            keys.set("attention.max_alibi_bias", max);
            if let Some(clip) = header.f32(Field::Clip).filter(|clip| *clip > 0.0) {
                keys.set("attention.clamp_kqv", clip);
            }
        }
        _ => {}
    }
    if let Some(base) = known.rope_base {
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

/// Key and value heads, which no header of llama has: from the rows of the keys.
fn key_heads(old: &OldFile, known: &Resolved, rows: u32) -> Result<u32, Error> {
    let head = old.header.get(Field::Width).unwrap_or(0) / known.heads;
    let count = rows.checked_div(head).unwrap_or(0);
    if count == 0 || !rows.is_multiple_of(head) || !known.heads.is_multiple_of(count) {
        let what = format!("{rows} rows of keys are not those of heads of {head}");
        let help = "say the right number with --head-count";
        return Err(Error::input("legacy-head-count", &old.path, what, help));
    }
    if known.gqa.is_some_and(|gqa| gqa.checked_mul(count) != Some(known.heads)) {
        let what = format!("{} heads share {count} key and value heads", known.heads);
        let help = "leave out --gqa: the tensors tell";
        return Err(Error::request("option-contradicts", what, help));
    }
    Ok(count)
}

/// What is odd about the header, for the user.
pub(super) fn notes(old: &OldFile, known: &Resolved) -> Vec<String> {
    let mut notes = Vec::new();
    let rotary = old.header.get(Field::Width).unwrap_or(0) / known.heads;
    if let (Program::Llama, Some(stored)) = (old.layout.program, old.header.get(Field::Rotary))
        && stored != rotary
    {
        notes.push(format!(
            "the header says that {stored} dimensions of a head are rotated; all {rotary} are"
        ));
    }
    if old.super_block == SuperBlock::Of64 {
        notes.push("super-blocks of 64 elements, which no type of today has".to_owned());
    }
    notes
}

/// `general.file_type` and its name in the description: as the header has it.
pub(super) fn mix_name(old: &OldFile) -> String {
    let number = old.header.file_type();
    // Programs other than llama's number the K types by themselves, without mixes.
    let name = match (old.layout.program, number) {
        (_, 0) => return "ALL_F32".to_owned(),
        (_, 4) => "Q4_1_SOME_F16".to_owned(),
        (Program::Llama, number) => gguf::file_type(number.into())
            .map_or_else(|| number.to_string(), |row| row.name.to_owned()),
        (_, number @ 10..=14) => gguf::TensorType::from_id(number).to_string(),
        (_, number) => gguf::file_type(number.into())
            .map_or_else(|| number.to_string(), |row| row.name.to_owned()),
    };
    format!("MOSTLY_{name}")
}
