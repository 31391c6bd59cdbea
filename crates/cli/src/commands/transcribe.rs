//! `gguf transcribe`: speech recognition with Whisper.

use std::io::Write;
use std::path::PathBuf;

use gguf_kit::transcribe::{
    Segment, Skipped, TranscribeOptions, Transcript, srt, time, transcriber, vtt,
};
use gguf_store::AtomicFile;
use serde_json::{Value, json};

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::model_args::{PrecisionArg, RunArgs};
use crate::progress::Progress;
use crate::terminal;
use crate::threads::on_threads;

/// Transcribe audio with a Whisper model.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf transcribe whisper-base.gguf talk.mp3\n  \
                        gguf transcribe whisper-base.gguf film.flac --language de --translate\n  \
                        gguf transcribe whisper-base.gguf talk.mp3 --batch-size 8\n  \
                        gguf transcribe whisper-base.gguf talk.ogg --format srt -o talk.srt")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    /// Audio files: WAV, FLAC, MP3 or Ogg Vorbis; `-` for standard input. One transcript each.
    #[arg(required = true, value_name = "AUDIO")]
    audio: Vec<PathBuf>,
    /// Spoken language, such as `de` [default: detected].
    #[arg(short, long, value_name = "CODE", alias = "lang")]
    language: Option<String>,
    /// Translate to English.
    #[arg(long)]
    translate: bool,
    /// Print segment timestamps. Subtitles and JSON always have them.
    #[arg(long)]
    timestamps: bool,
    /// Parts of a recording to decode together. A long recording is cut in pauses, which is faster; with 1, each window
    /// continues the text of the one before.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        value_parser = clap::value_parser!(u8).range(1..=64),
        alias = "batch_size"
    )]
    batch_size: u8,
    /// Texts that beam search continues at a time; 1 is greedy, which is faster and gets more words wrong.
    #[arg(
        long,
        value_name = "N",
        default_value_t = 5,
        value_parser = clap::value_parser!(u8).range(1..=16),
        alias = "beam_size"
    )]
    beam_size: u8,
    /// Disable temperature fallback.
    #[arg(long)]
    no_fallback: bool,
    /// Output format: text, subtitles, or one JSON object per audio file.
    #[arg(long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    format: Format,
    /// Print JSON: the same as `--format json`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// Output file [default: standard output].
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Compute precision: F32 accumulation (exact) or 8-bit activations (fast).
    #[arg(long, value_enum, default_value_t = PrecisionArg::Fast, alias = "arithmetic")]
    precision: PrecisionArg,
    #[command(flatten)]
    run: RunArgs,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    Text,
    Srt,
    Vtt,
    Json,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if matches!(args.format, Format::Srt | Format::Vtt) && args.audio.len() > 1 {
        return Err(Failure::Usage("srt and vtt support a single audio file".into()));
    }
    on_threads(args.run.threads, || {
        let running = args.run.open(&args.source, args.precision)?;
        let overwrite = args.force.protecting(running.files.iter().chain(&args.audio));
        if let Some(output) = &args.output {
            overwrite.check(output)?;
        }
        let format = if args.json { Format::Json } else { args.format };
        let options = TranscribeOptions {
            language: args.language.as_deref().map(str::to_lowercase),
            translate: args.translate,
            timestamps: args.timestamps || format != Format::Text,
            batch_size: args.batch_size.into(),
            beam_size: args.beam_size.into(),
            no_fallback: args.no_fallback,
            cache_type: args.run.cache_type(args.precision),
        };
        let mut transcriber = transcriber(&running, options)?;
        let mut all = String::new();
        for file in &args.audio {
            let progress = Progress::new();
            let transcript = transcriber.transcribe(file, &progress)?;
            progress.finish();
            for Skipped { start, end, no_speech_prob } in &transcript.skipped {
                let [start, end] = [start, end].map(|at| time(*at, '.', false));
                terminal::note(format!(
                    "{}: no speech was recognized from {start} to {end} (no-speech probability \
                     {no_speech_prob:.2}), although it is audible",
                    file.display()
                ));
            }
            let text = args.formatted(format, &file.display().to_string(), &transcript);
            if args.output.is_some() {
                all.push_str(&text);
            } else {
                let mut out = std::io::stdout().lock();
                out.write_all(text.as_bytes()).and_then(|()| out.flush())?;
            }
        }
        let Some(path) = &args.output else { return Ok(()) };
        AtomicFile::write(path, all.as_bytes(), &overwrite)?;
        eprintln!("wrote {}", path.display());
        Ok(())
    })
}

impl Args {
    /// Formats a transcript.
    fn formatted(&self, format: Format, file: &str, transcript: &Transcript) -> String {
        match format {
            Format::Text if self.timestamps => transcript.segments.iter().map(line).collect(),
            Format::Text => format!("{}\n", transcript.text),
            Format::Srt => srt(&transcript.segments),
            Format::Vtt => vtt(&transcript.segments),
            Format::Json => document::line("transcribe/1", object(file, transcript)),
        }
    }
}

fn line(segment: &Segment) -> String {
    let [start, end] = [segment.start, segment.end].map(|at| time(at, '.', false));
    format!("[{start} --> {end}] {}\n", segment.text.trim())
}

fn object(file: &str, transcript: &Transcript) -> Value {
    let mut document = json!({ "file": file });
    if let (Value::Object(document), Value::Object(fields)) = (&mut document, json!(transcript)) {
        document.extend(fields);
    }
    document
}
