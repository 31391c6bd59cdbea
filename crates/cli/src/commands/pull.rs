//! `gguf pull`, `gguf list` and `gguf rm`: stored models of the Hub.

use std::io::Write;

use gguf::Severity;
use gguf_kit::Files;
use gguf_remote::{HubCache, Location, StoredFile};
use serde_json::json;

use crate::commands::render_template;
use crate::failure::Failure;
use crate::{document, downloads, listing, terminal};

/// Download a model of the Hugging Face Hub.
///
/// It is stored where the Python package huggingface_hub stores it, and shared with it. Commands that run a model download it
/// themselves; commands that only read headers do not. The model is scanned for manipulation, as by `gguf check --scan`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf pull hf:HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:Q4_K_M")]
pub struct PullArgs {
    /// Model: hf:org/repo, hf:org/repo:TYPE or hf:org/repo:file.gguf, with @revision if wanted.
    source: String,
}

/// List the stored GGUF files of the Hugging Face Hub.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf list")]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

/// Remove stored GGUF files of the Hugging Face Hub.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf rm hf:HuggingFaceTB/SmolLM2-135M-Instruct-GGUF")]
pub struct RemoveArgs {
    /// Repository, or a model in it: hf:org/repo, hf:org/repo:TYPE.
    source: String,
}

pub fn pull(args: &PullArgs) -> Result<(), Failure> {
    let source = match args.source.starts_with("hf:") || args.source.contains("://") {
        true => args.source.clone(),
        false => format!("hf:{}", args.source),
    };
    if !matches!(Location::parse(&source)?, Location::Hub(_)) {
        let what = format!("{source} is not on the Hub: expected hf:org/repo or hf:org/repo:TYPE");
        return Err(Failure::Usage(what));
    }
    let path = downloads::local(&source)?;
    warn_of_manipulation(&path)?;
    Ok(writeln!(std::io::stdout(), "{path}")?)
}

/// Prints what a scan of the downloaded model finds.
fn warn_of_manipulation(path: &str) -> Result<(), Failure> {
    let findings = Files::open(path, None)?.scan(&render_template::renderer()?)?;
    let suspicious = findings.iter().filter(|finding| finding.severity != Severity::Info);
    for finding in suspicious.clone() {
        terminal::warning(terminal::plain(&finding.message));
    }
    if suspicious.count() > 0 {
        terminal::note(format!("`gguf check {path} --scan` has the whole report"));
    }
    Ok(())
}

pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let files = cache()?.files();
    let mut out = std::io::stdout().lock();
    if args.json {
        let listed: Vec<_> = files
            .iter()
            .map(|file| {
                json!({
                    "repository": file.repository, "commit": file.commit, "name": file.file,
                    "file": file.path.display().to_string(), "file_bytes": file.bytes,
                })
            })
            .collect();
        return Ok(document::print(&mut out, "list/1", json!({ "models": listed }))?);
    }
    for file in &files {
        let name = terminal::plain(&format!("hf:{}:{}", file.repository, file.file));
        writeln!(out, "{:>9}  {name}", listing::bytes(file.bytes))?;
    }
    if files.is_empty() {
        terminal::note("no model is stored; `gguf pull hf:org/repo` downloads one");
    }
    Ok(())
}

pub fn remove(args: &RemoveArgs) -> Result<(), Failure> {
    let source = args.source.strip_prefix("hf:").unwrap_or(&args.source);
    let (repository, part) = source.split_once(':').unwrap_or((source, ""));
    let part = part.to_lowercase();
    let cache = cache()?;
    let mut files = cache.files();
    let is_one = |file: &StoredFile| {
        file.repository == repository && file.file.to_lowercase().contains(&part)
    };
    files.retain(is_one);
    if files.is_empty() {
        return Err(Failure::Usage(format!("no stored model is {source}; `gguf list` lists them")));
    }
    let freed = cache.remove(&files)?;
    eprintln!("removed {}, {}", listing::plural(files.len(), "file"), listing::bytes(freed));
    Ok(())
}

fn cache() -> Result<HubCache, Failure> {
    HubCache::from_env()
        .ok_or_else(|| Failure::Environment("there is no home directory: set HF_HOME".into()))
}
