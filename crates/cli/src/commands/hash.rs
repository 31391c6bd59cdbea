//! `gguf hash`: digests of tensors and models, in the format of `llama-gguf-hash`.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::PathBuf;

use gguf_inspect::{Algorithm, Entry, HashOptions, Manifest, Outcome, Tally, hash};
use gguf_kit::{open, read_text};
use serde_json::json;

use crate::commands;
use crate::document;
use crate::failure::Failure;
use crate::progress::Progress;

/// Compute or verify digests of a model and its tensors.
///
/// Hashes the stored bytes: byte order changes the digests, not the weights. Use `gguf diff` to compare
/// weights.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if verification fails.\n\nExamples:\n  gguf hash --sha256 model.gguf > model.sha256\n  \
                        gguf hash --check model.sha256 model.gguf\n  gguf hash --file *.gguf > SHA256SUMS"
)]
pub struct Args {
    /// Models.
    #[arg(required = true, value_name = "SOURCE")]
    sources: Vec<String>,
    /// Compute XXH64 (default).
    #[arg(long)]
    xxh64: bool,
    /// Compute SHA-1.
    #[arg(long)]
    sha1: bool,
    /// Compute SHA-256.
    #[arg(long)]
    sha256: bool,
    /// Compute a version 5 UUID of the content.
    #[arg(long)]
    uuid: bool,
    /// Compute XXH64, SHA-1 and SHA-256.
    #[arg(long)]
    all: bool,
    /// Hash the whole model only, not each tensor.
    #[arg(long)]
    no_layer: bool,
    /// Print the SHA-256 of each file instead, as `sha256sum` and the Hub do.
    #[arg(long, conflicts_with_all = ["xxh64", "sha1", "sha256", "uuid", "all", "no_layer", "check"])]
    file: bool,
    /// Verify against the digests in this file; - reads from standard input.
    #[arg(short, long, value_name = "MANIFEST")]
    check: Option<PathBuf>,
    /// Print digests as JSON.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn algorithms(&self, manifest: Option<&Manifest>) -> Vec<Algorithm> {
        let chosen = [
            (self.xxh64 || self.all, Algorithm::Xxh64),
            (self.sha1 || self.all, Algorithm::Sha1),
            (self.sha256 || self.all, Algorithm::Sha256),
            (self.uuid, Algorithm::Uuid),
        ];
        let chosen: Vec<_> = chosen.into_iter().filter(|(yes, _)| *yes).map(|(_, a)| a).collect();
        match (chosen.is_empty(), manifest) {
            (false, _) => chosen,
            (true, Some(manifest)) => manifest.strongest().into_iter().collect(),
            (true, None) => vec![Algorithm::Xxh64],
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let manifest = args.check.as_deref().map(read_manifest).transpose()?;
    commands::each(&args.sources, |source| hash_one(args, source, manifest.as_ref()))
}

/// Prints the digests of the files of a model.
fn hash_files(args: &Args, source: &str) -> Result<(), Failure> {
    let progress = Progress::new();
    let digests = gguf_kit::file_digests(source, &progress)?;
    progress.finish();
    let mut out = std::io::stdout().lock();
    if args.json {
        let entry = |(path, digest): &(PathBuf, String)| json!({ "algorithm": "sha256", "digest": digest, "name": path.display().to_string(), "check": null });
        let digests: Vec<_> = digests.iter().map(entry).collect();
        let document = json!({ "file": gguf_kit::redact(source), "digests": digests });
        return Ok(document::print_one(&mut out, "hash/1", document, args.sources.len() > 1)?);
    }
    for (path, digest) in digests {
        writeln!(out, "{digest}  {}", path.display())?;
    }
    Ok(())
}

fn hash_one(args: &Args, source: &str, manifest: Option<&Manifest>) -> Result<(), Failure> {
    if args.file {
        return hash_files(args, source);
    }
    let opened = open(source)?;
    let source = &*gguf_kit::redact(source);
    let model = opened.model();
    let algorithms = args.algorithms(manifest);
    if algorithms.is_empty() {
        return Err(Failure::Input("the manifest contains no digests".into()));
    }
    let options = HashOptions { algorithms, per_tensor: !args.no_layer };
    let progress = Progress::new();
    let mut out = std::io::stdout().lock();
    let mut entries = Vec::new();
    let mut tally = Tally::default();
    let mut written = Ok(());
    let mut take = |entry: Entry| {
        let found = manifest.map(|manifest| manifest.check(&entry));
        if let Some(found) = found {
            tally.add(found);
        }
        if args.json {
            entries.push(json!({
                "algorithm": entry.algorithm.name(),
                "digest": entry.digest,
                "name": entry.name,
                "check": found.map(|found| found.to_string()),
            }));
            return ControlFlow::Continue(());
        }
        written = match found {
            Some(found) => writeln!(out, "{entry}  -  {found}"),
            None => writeln!(out, "{entry}"),
        };
        if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    hash(model, source, &options, &progress, &mut take)?;
    progress.finish();
    written?;
    if args.json {
        let document = json!({ "file": source, "digests": entries });
        document::print_one(&mut out, "hash/1", document, args.sources.len() > 1)?;
    }
    match (manifest, tally.outcome()) {
        (None, _) | (_, Outcome::Success) => Ok(()),
        (_, Outcome::Failure) => {
            Err(Failure::Input("verification failed: a digest does not match".into()))
        }
        (_, Outcome::MissingEntry) => {
            Err(Failure::Input("verification failed: the manifest does not list this model".into()))
        }
    }
}

fn read_manifest(path: &std::path::Path) -> Result<Manifest, Failure> {
    let text = match path == std::path::Path::new("-") {
        true => std::io::read_to_string(std::io::stdin()).map_err(|fault| {
            Failure::Environment(format!("cannot read standard input: {fault}"))
        })?,
        false => read_text(path)?,
    };
    // Parsing cannot fail: lines without a digest are skipped.
    Ok(text.parse().unwrap_or_default())
}
