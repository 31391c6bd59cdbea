//! `gguf transcribe`: what is spoken in recordings.

use std::io::Write;
use std::path::PathBuf;

use gguf_kit::on_threads;
use gguf_kit::transcribe::{Segment, TranscribeOptions, Transcript, srt, time, transcriber, vtt};
use gguf_store::AtomicFile;
use serde_json::{Value, json};

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::running::{RunArgs, Sums};

/// Write down what is spoken in recordings, with a Whisper.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf transcribe whisper-base.gguf talk.mp3\n  \
                        gguf transcribe whisper-base.gguf film.flac --language de --translate\n  \
                        gguf transcribe whisper-base.gguf talk.ogg --format srt -o talk.srt")]
pub struct Args {
    /// File, directory, shard or far location of the model.
    source: String,
    /// Recordings: WAV, FLAC, MP3 or Ogg Vorbis. Each gives a text.
    #[arg(required = true, value_name = "AUDIO")]
    recordings: Vec<PathBuf>,
    /// The language that is spoken, such as `de` [default: the model finds out].
    #[arg(short, long, value_name = "CODE", alias = "lang")]
    language: Option<String>,
    /// Write English, whatever is spoken.
    #[arg(long)]
    translate: bool,
    /// Say when something is spoken. Subtitles and JSON do so anyway.
    #[arg(long)]
    timestamps: bool,
    /// Take the best tokens even if they repeat themselves or were guessed, instead of trying again with
    /// chance.
    #[arg(long)]
    no_fallback: bool,
    /// Text, subtitles, or a JSON object for each recording.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Write to a file instead.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How products are computed.
    #[arg(long, value_enum, default_value_t = Sums::Fast)]
    arithmetic: Sums,
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
    if matches!(args.format, Format::Srt | Format::Vtt) && args.recordings.len() > 1 {
        return Err(Failure::Usage("subtitles are of one recording: name one at a time".into()));
    }
    on_threads(args.run.threads, || {
        let running = args.run.open(&args.source, args.arithmetic)?;
        let overwrite = args.force.protecting(running.files.iter().chain(&args.recordings));
        if let Some(output) = &args.output {
            overwrite.check(output)?;
        }
        let options = TranscribeOptions {
            language: args.language.as_deref().map(str::to_lowercase),
            translate: args.translate,
            timestamps: args.timestamps || args.format != Format::Text,
            no_fallback: args.no_fallback,
            cache_type: args.run.cache_type(),
        };
        let mut transcriber = transcriber(&running, options)?;
        let mut all = String::new();
        for recording in &args.recordings {
            let progress = Progress::new();
            let transcript = transcriber.transcribe(recording, &progress)?;
            progress.finish();
            let shown = args.shown(&recording.display().to_string(), &transcript);
            if args.output.is_some() {
                all.push_str(&shown);
            } else {
                let mut out = std::io::stdout().lock();
                out.write_all(shown.as_bytes()).and_then(|()| out.flush())?;
            }
        }
        let Some(path) = &args.output else { return Ok(()) };
        AtomicFile::write(path, all.as_bytes(), &overwrite)?;
        eprintln!("wrote {}", path.display());
        Ok(())
    })
}

impl Args {
    /// A transcript in the form that is asked for.
    fn shown(&self, file: &str, transcript: &Transcript) -> String {
        match self.format {
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
