//! `gguf logits`: writes logits as a NumPy file.

use std::path::PathBuf;

use gguf_kit::logits::{EncoderInput, logits};
use gguf_kit::npy;
use gguf_store::AtomicFile;
use gguf_tokenizer::{EncodeOptions, Tokenizer, TokenizerOptions};

use crate::failure::Failure;
use crate::force::Force;
use crate::model_args::{PrecisionArg, RunArgs, warn_if_too_long};
use crate::progress::Progress;
use crate::text_input;
use crate::threads::on_threads;

/// Compute the logits of each token of a text.
///
/// Writes a .npy file: F32 [tokens, vocabulary], or the last hidden states of a model without an output
/// matrix.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf logits model.gguf -p \"Hello world\" -o logits.npy\n  \
                        gguf logits model.gguf --ids \"1 15043 3186\" -o logits.npy\n  \
                        gguf logits whisper.gguf --features mel.npy --ids 50258 -o logits.npy")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    #[command(flatten)]
    input: Input,
    /// Encoder input features, a .npy file: F32 [mels, frames]. Token ids then go to the decoder.
    #[arg(long, value_name = "FILE")]
    features: Option<PathBuf>,
    /// Token ids for a text encoder. The other ids then go to the decoder.
    #[arg(long, value_name = "IDS", conflicts_with = "features")]
    encoder_ids: Option<String>,
    /// Output file.
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
    #[arg(long, value_enum, default_value_t = PrecisionArg::Exact, alias = "arithmetic")]
    precision: PrecisionArg,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// Token ids, separated by spaces or as a JSON list.
    #[arg(long, value_name = "IDS")]
    ids: Option<String>,
    /// Text.
    #[arg(short, long, value_name = "TEXT")]
    prompt: Option<String>,
    /// Text file.
    #[arg(short, long, value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    on_threads(args.run.threads, || {
        let running = args.run.open(&args.source, args.precision)?;
        let inputs = running.files.iter().chain(&args.input.file).chain(&args.features);
        let overwrite = args.force.protecting(inputs);
        overwrite.check(&args.output)?;
        let ids = match &args.input.ids {
            Some(ids) => text_input::ids(ids).collect::<Result<_, _>>()?,
            None => {
                let tokenizer =
                    Tokenizer::from_metadata(&running.metadata, TokenizerOptions::default())?;
                tokenizer.encode(&args.input.text()?, EncodeOptions::default())
            }
        };
        if ids.is_empty() {
            return Err(Failure::Usage("the input has no tokens".into()));
        }
        warn_if_too_long(&running.metadata, ids.len());
        let features = args.features.as_deref().map(npy::read).transpose()?;
        // The executor expects one row per frame.
        let features = features.map(|features| features.transposed());
        let encoder_ids = args
            .encoder_ids
            .as_deref()
            .map(|ids| text_input::ids(ids).collect::<Result<Vec<_>, _>>());
        let encoder_ids = encoder_ids.transpose()?;
        let encoder_input = match (&features, &encoder_ids) {
            (Some(features), _) => EncoderInput::Features(features),
            (_, Some(ids)) => EncoderInput::Ids(ids),
            _ => EncoderInput::None,
        };
        let progress = Progress::new();
        let cache_type = args.run.cache_type(args.precision);
        let output = logits(&running, &ids, encoder_input, cache_type, &progress)?;
        progress.finish();
        AtomicFile::write(&args.output, &npy::to_bytes(&output), &overwrite)?;
        let (rows, width) = (output.rows, output.width);
        eprintln!("wrote {} ({rows} x {width})", args.output.display());
        Ok(())
    })
}

impl Input {
    fn text(&self) -> Result<String, Failure> {
        text_input::text(self.prompt.as_deref(), self.file.as_deref())
    }
}
