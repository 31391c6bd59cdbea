//! `gguf pull`, `gguf list` and `gguf rm`: stored models.

use std::io::Write;
use std::path::PathBuf;

use gguf::Severity;
use gguf_kit::Files;
use gguf_remote::{
    HubCache, Location, OllamaName, OllamaStore, RemoteOptions, StoredFile, lm_studio_files,
};
use serde_json::json;

use crate::commands::render_template;
use crate::failure::Failure;
use crate::progress::Progress;
use crate::{document, downloads, listing, terminal};

/// Download a model of the Hugging Face Hub or of Ollama.
///
/// A model of the Hub is stored where the Python package huggingface_hub stores it, and shared with it. Commands that run a
/// model download it themselves; commands that only read headers do not. A model of Ollama's registry is added to the
/// store of Ollama. The model is scanned for manipulation, as by `gguf check --scan`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf pull hf:HuggingFaceTB/SmolLM2-135M-Instruct-GGUF:Q4_K_M")]
pub struct PullArgs {
    /// Model: hf:org/repo, hf:org/repo:TYPE or hf:org/repo:file.gguf, with @revision if wanted; or
    /// ollama:model:tag.
    source: String,
}

/// List stored models of the Hub, Ollama and LM Studio.
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
    if let Some(name) = args.source.strip_prefix("ollama:") {
        let name = OllamaName::parse(name)
            .map_err(|form| Failure::Usage(format!("{} is not a model: {form}", args.source)))?;
        let progress = Progress::new();
        let path = OllamaStore::from_env().pull(&name, RemoteOptions::from_env(), &progress)?;
        progress.finish();
        warn_of_manipulation(&path.display().to_string())?;
        return Ok(writeln!(std::io::stdout(), "{}", path.display())?);
    }
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
    let suspicious = findings.iter().filter(|finding| finding.severity != Severity::Note);
    for finding in suspicious.clone() {
        terminal::warning(terminal::plain(&finding.message));
    }
    if suspicious.count() > 0 {
        terminal::note(format!("`gguf check {path} --scan` has the whole report"));
    }
    Ok(())
}

pub fn list(args: &ListArgs) -> Result<(), Failure> {
    let models = stored_models();
    let mut out = std::io::stdout().lock();
    if args.json {
        let to_json = |model: &StoredModel| {
            json!({
                "store": model.store, "repository": model.repository, "commit": model.commit,
                "name": model.name, "file": model.path.display().to_string(),
                "file_bytes": model.bytes,
            })
        };
        let listed: Vec<_> = models.iter().map(to_json).collect();
        return Ok(document::print(&mut out, "list/1", json!({ "models": listed }))?);
    }
    for model in &models {
        let location = terminal::plain(&model.location);
        writeln!(out, "{:>9}  {location}", listing::bytes(model.bytes))?;
    }
    if models.is_empty() {
        terminal::note("no model is stored; `gguf pull hf:org/repo` downloads one");
    }
    Ok(())
}

/// A model of one of the stores.
struct StoredModel {
    store: &'static str,
    /// Name of the model for commands.
    location: String,
    repository: Option<String>,
    commit: Option<String>,
    name: String,
    path: PathBuf,
    bytes: u64,
}

fn stored_models() -> Vec<StoredModel> {
    let hub = cache().map(|cache| cache.files()).unwrap_or_default().into_iter().map(|file| {
        let location = format!("hf:{}:{}", file.repository, file.file);
        StoredModel {
            store: "hub",
            location,
            repository: Some(file.repository),
            commit: Some(file.commit),
            name: file.file,
            path: file.path,
            bytes: file.bytes,
        }
    });
    let ollama = OllamaStore::from_env().models().into_iter().map(|model| {
        let name = model.name.to_string();
        let (location, path, bytes) = (format!("ollama:{name}"), model.path, model.bytes);
        let (repository, commit) = (None, None);
        StoredModel { store: "ollama", location, repository, commit, name, path, bytes }
    });
    let lm_studio = lm_studio_files().into_iter().map(|path| {
        let bytes = path.metadata().map_or(0, |status| status.len());
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let location = path.display().to_string();
        let (repository, commit) = (None, None);
        StoredModel { store: "lm-studio", location, repository, commit, name, path, bytes }
    });
    hub.chain(ollama).chain(lm_studio).collect()
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
