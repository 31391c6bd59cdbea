//! `gguf calibration-text`: lets a model write its calibration text.

use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use gguf_kit::calibration_text::{SelfTextOptions, bundled_text, calibration_text};
use gguf_kit::{Opened, open};
use gguf_store::AtomicFile;

use crate::commands::render_template::renderer;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::threads::on_threads;
use crate::{listing, terminal};

/// Write a calibration text with the model itself.
///
/// Samples many conversations at temperature 1, half of them in the chat template if the model has one, as a text for
/// `gguf quantize --calibrate` and `gguf imatrix -f`. For models whose users' texts are not at hand: a text like theirs
/// is better. With --bundled, writes the text of gguf-kit instead, with its chats in the model's chat template.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf calibration-text model-f16.gguf -o text.txt\n  \
    gguf calibration-text model-f16.gguf --tokens 30000 --seed 2 > text.txt\n  \
    gguf calibration-text model-f16.gguf --bundled -o text.txt")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    model: String,
    /// Output file [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Number of tokens.
    #[arg(long, value_name = "N", default_value = "100000", value_parser = listing::parse_positive::<u32>)]
    tokens: u32,
    /// Seed of the random numbers.
    #[arg(long, value_name = "N", default_value = "0")]
    seed: u64,
    /// Write the bundled text: prose in many languages, code and chats.
    #[arg(long, conflicts_with_all = ["tokens", "seed"])]
    bundled: bool,
    /// Number of threads [default: one per core].
    #[arg(short, long, value_name = "N")]
    threads: Option<NonZeroUsize>,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.model)?;
    let overwrite = args.force.protecting(opened.files());
    let output = args.output.as_deref().filter(|output| output.as_os_str() != "-");
    output.map_or(Ok(()), |output| overwrite.check(output))?;
    let text = if args.bundled {
        let text = bundled_text(opened.model().metadata(), &renderer()?);
        terminal::notes(&text.notes);
        text.text
    } else {
        let options = SelfTextOptions { tokens: args.tokens as usize, seed: args.seed };
        on_threads(args.threads, || sample(&opened, &args.model, options))?
    };
    let Some(output) = output else {
        return Ok(std::io::stdout().lock().write_all(text.as_bytes())?);
    };
    AtomicFile::write(output, text.as_bytes(), &overwrite)?;
    eprintln!("wrote {}", output.display());
    Ok(())
}

/// Writes the text of a model beside an output, unless it is there, and returns its path.
pub fn beside(
    output: &Path,
    opened: &Opened,
    source: &str,
    tokens: usize,
    force: &Force,
) -> Result<PathBuf, Failure> {
    let name = source.rsplit(['/', '\\', ':']).next().unwrap_or(source);
    let name = name.strip_suffix(".gguf").unwrap_or(name);
    let path = output.with_file_name(format!("{name}.calibration.txt"));
    if path.exists() && !force.is_given() {
        terminal::notes(&[format!("calibrates with {}, which exists", path.display())]);
        return Ok(path);
    }
    let text = sample(opened, source, SelfTextOptions { tokens, seed: 0 })?;
    AtomicFile::write(&path, text.as_bytes(), &force.protecting(opened.files()))?;
    eprintln!("wrote {}", path.display());
    Ok(path)
}

fn sample(opened: &Opened, source: &str, options: SelfTextOptions) -> Result<String, Failure> {
    let progress = Progress::of_tokens();
    let text = calibration_text(opened, source, &renderer()?, options, &progress)?;
    progress.finish();
    terminal::notes(&text.notes);
    Ok(text.text)
}
