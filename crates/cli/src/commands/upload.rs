//! `gguf upload`: publishes files in a repository of the Hub.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf_remote::{
    Location, RemoteOptions, Repository, UploadFile, UploadOptions, UploadReport, UploadState,
    Visibility,
};
use gguf_store::is_unfinished;
use serde_json::json;

use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{document, listing, terminal};

/// Upload files to a repository of the Hugging Face Hub.
///
/// All files become one commit. Files that the repository has already are skipped, and bytes that the Hub has are not sent
/// again: an interrupted upload continues when it is repeated. The token is that of HF_TOKEN, or of `hf auth login`.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf upload DIR hf:me/My-Model-GGUF --create\n  \
    gguf upload model-q4.gguf imatrix.gguf hf:me/My-Model-GGUF\n  \
    gguf upload model.gguf hf:me/My-Model-GGUF/My-Model-Q4_K_M.gguf\n  \
    gguf upload DIR hf:me/My-Model-GGUF@branch")]
pub struct Args {
    /// Files, or directories whose contents are uploaded. Hidden directories and unfinished outputs are left out.
    #[arg(required = true, num_args = 1.., value_name = "FILE|DIR")]
    sources: Vec<PathBuf>,
    /// Repository: hf:me/repo, hf:me/repo@branch; or the file in it, hf:me/repo/name.gguf.
    #[arg(required = true, value_name = "REPOSITORY")]
    destination: String,
    /// Create the repository or branch if it does not exist.
    #[arg(long)]
    create: bool,
    /// Create the repository, if it does not exist, as a private one.
    #[arg(long)]
    private: bool,
    /// Commit message [default: names the file].
    #[arg(short, long, value_name = "TEXT")]
    message: Option<String>,
    /// Print the uploaded files as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let repository = destination(&args.destination)?;
    let files = files(&args.sources, repository.file.as_deref())?;
    let visibility = match (args.private, args.create) {
        (true, _) => Some(Visibility::Private),
        (false, true) => Some(Visibility::Public),
        (false, false) => None,
    };
    let options = UploadOptions {
        existing: args.force.existing(),
        create: visibility,
        message: args.message.clone(),
        records: gguf_remote::upload_directory(),
    };
    let progress = Progress::new();
    let remote = RemoteOptions::from_env();
    let report = gguf_remote::upload(&repository, &files, &options, remote, &progress)?;
    progress.finish();
    let mut out = std::io::stdout().lock();
    if args.json {
        return Ok(document::print(&mut out, "upload/1", to_json(&repository, &report))?);
    }
    for file in &report.files {
        let (size, name) = (listing::bytes(file.bytes), terminal::plain(&file.name));
        writeln!(out, "{size:>9}  {:<15}  {name}", said(file.state))?;
    }
    summarize(&repository, &report);
    Ok(())
}

/// Prints the commit to standard error.
pub fn summarize(repository: &Repository, report: &UploadReport) {
    let place = Repository { file: None, ..repository.clone() };
    match &report.url {
        Some(url) => eprintln!("committed to {place}: {url}"),
        None => eprintln!("{place} has all files already"),
    }
}

fn to_json(repository: &Repository, report: &UploadReport) -> serde_json::Value {
    let file = |file: &gguf_remote::UploadedFile| {
        json!({
            "name": file.name, "file_bytes": file.bytes, "sha256": file.sha256,
            "state": match file.state {
                UploadState::Sent => "sent",
                UploadState::Stored => "stored",
                UploadState::Unchanged => "unchanged",
                UploadState::Ignored => "ignored",
            },
        })
    };
    json!({
        "repository": repository.name, "revision": repository.revision, "commit": report.commit,
        "url": report.url, "files": report.files.iter().map(file).collect::<Vec<_>>(),
    })
}

fn said(state: UploadState) -> &'static str {
    match state {
        UploadState::Sent => "sent",
        UploadState::Stored => "on the Hub",
        UploadState::Unchanged => "unchanged",
        UploadState::Ignored => "ignored by Git",
    }
}

/// Parses the repository; `hf:` may be missing.
fn destination(word: &str) -> Result<Repository, Failure> {
    let location = match word.contains(':') {
        true => word.to_owned(),
        false => format!("hf:{word}"),
    };
    match Location::parse(&location)? {
        Location::Hub(repository) => Ok(repository),
        _ => {
            let what =
                format!("{word} is not on the Hub: expected hf:me/repo or hf:me/repo@branch");
            Err(Failure::Usage(what))
        }
    }
}

/// Returns the files to upload with their names in the repository. `name` is the name of the only file.
fn files(sources: &[PathBuf], name: Option<&str>) -> Result<Vec<UploadFile>, Failure> {
    if let Some(name) = name {
        return match sources {
            [path] if !path.is_dir() => {
                Ok(vec![UploadFile { path: path.clone(), name: name.into() }])
            }
            _ => Err(Failure::Usage(format!(
                "{name} names one file of the repository: give one file, or name the repository alone"
            ))),
        };
    }
    let mut files = Vec::new();
    for path in sources {
        if path.is_dir() {
            add_directory(path, "", &mut files)?;
        } else {
            let name = text(path.file_name().unwrap_or_default(), path)?;
            files.push(UploadFile { path: path.clone(), name });
        }
    }
    match files.is_empty() {
        true => Err(Failure::Usage("the directory has no files to upload".into())),
        false => Ok(files),
    }
}

/// Adds the files of a directory and its subdirectories, sorted. Links to directories are not followed.
fn add_directory(
    directory: &Path,
    prefix: &str,
    files: &mut Vec<UploadFile>,
) -> Result<(), Failure> {
    let failed = |fault| gguf::Error::read(directory, fault);
    let entries = directory.read_dir().map_err(failed)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        let name = text(&entry.file_name(), &path)?;
        if entry.file_type().map_err(failed)?.is_dir() {
            if !name.starts_with('.') {
                add_directory(&path, &format!("{prefix}{name}/"), files)?;
            }
        } else if path.is_file() && !is_unfinished(&entry.file_name()) && name != ".DS_Store" {
            files.push(UploadFile { path, name: format!("{prefix}{name}") });
        }
    }
    Ok(())
}

fn text(name: &std::ffi::OsStr, path: &Path) -> Result<String, Failure> {
    let name = name.to_str().filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| {
        Failure::Usage(format!("{} has a name that a repository cannot have", path.display()))
    })
}
