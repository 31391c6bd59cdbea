//! `gguf logits`: what a model computes for a text, as a file of numpy.

use std::path::PathBuf;

use gguf_kit::logits::{EncoderInput, logits};
use gguf_kit::{npy, on_threads};
use gguf_store::AtomicFile;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::running::{RunArgs, Sums, warn_of_length};
use crate::words;

/// Write the logits of each token of a text to a file.
///
/// A .npy file: F32 [tokens, vocabulary]; of a model without an output matrix its last hidden states.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf logits model.gguf -p \"Hello world\" -o logits.npy\n  \
                        gguf logits model.gguf --ids \"1 15043 3186\" -o logits.npy\n  \
                        gguf logits whisper.gguf --features mel.npy --ids 50258 -o logits.npy")]
pub struct Args {
    /// File, directory, shard or far location of the model.
    source: String,
    #[command(flatten)]
    input: Input,
    /// Features of an encoder: F32 [mels, frames] as a .npy file; the ids are the decoder's.
    #[arg(long, value_name = "FILE")]
    features: Option<PathBuf>,
    /// Token ids for an encoder of text; the other ids are the decoder's.
    #[arg(long, value_name = "IDS", conflicts_with = "features")]
    encoder_ids: Option<String>,
    /// The file to write.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Exact)]
    arithmetic: Sums,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// Token ids, apart or as a list.
    #[arg(long, value_name = "IDS")]
    ids: Option<String>,
    /// A text.
    #[arg(short, long, value_name = "TEXT")]
    prompt: Option<String>,
    /// A file with a text.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    on_threads(args.run.threads, || {
        let running = args.run.open(&args.source, args.arithmetic)?;
        let inputs = running.files.iter().chain(&args.input.file).chain(&args.features);
        let overwrite = args.force.protecting(inputs);
        overwrite.check(&args.output)?;
        let ids = match &args.input.ids {
            Some(ids) => words::ids(ids).collect::<Result<_, _>>()?,
            None => {
                let tokenizer =
                    Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
                tokenizer.encode(&args.input.text()?, EncodeOptions::default())
            }
        };
        if ids.is_empty() {
            return Err(Failure::Usage("there is no token to compute anything for".into()));
        }
        warn_of_length(&running.metadata, ids.len());
        let features = args.features.as_deref().map(npy::read).transpose()?;
        // By frames, as the executor reads them.
        let features = features.map(|features| features.transposed());
        let encoder_ids =
            args.encoder_ids.as_deref().map(|ids| words::ids(ids).collect::<Result<Vec<_>, _>>());
        let encoder_ids = encoder_ids.transpose()?;
        let for_encoder = match (&features, &encoder_ids) {
            (Some(features), _) => EncoderInput::Features(features),
            (_, Some(ids)) => EncoderInput::Ids(ids),
            _ => EncoderInput::None,
        };
        let progress = Progress::new();
        let cache_type = args.run.cache_type();
        let made = logits(&running, &ids, for_encoder, cache_type, &progress)?;
        progress.finish();
        AtomicFile::write(&args.output, &npy::to_bytes(&made), &overwrite)?;
        let (rows, width) = (made.rows, made.width);
        eprintln!("wrote {} ({rows} x {width})", args.output.display());
        Ok(())
    })
}

impl Input {
    fn text(&self) -> Result<String, Failure> {
        words::text(self.prompt.as_deref(), self.file.as_deref())
    }
}
