//! `gguf links`: installs compatibility links.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::launch;

/// Create links under the names of llama.cpp's tools.
///
/// Called through such a link, gguf behaves as the llama.cpp tool or the script of the Python package `gguf`
/// of that name, with its flags.
///
/// Fails without changes if a file that is not a link to gguf has one of the names.
#[derive(clap::Args)]
#[command(
    after_help = "`NAME --help` lists the flags of each tool and how they are handled. `gguf NAME` works without links.\n\n\
                  Example:\n  gguf links ~/.local/bin && llama-quantize --help"
)]
pub struct Args {
    /// Directory, preferably in PATH; created if missing.
    #[arg(required_unless_present = "page")]
    directory: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the tables of all flags as Markdown.
    #[arg(long, hide = true)]
    page: bool,
}

/// Creates links under the names of `programs`, or prints `page`, their flags as Markdown.
pub fn run(args: &Args, programs: &[&str], page: impl FnOnce() -> String) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let Some(directory) = args.directory.as_deref().filter(|_| !args.page) else {
        return Ok(out.write_all(page().as_bytes())?);
    };
    let program = launch::file()?;
    let cannot = |path: &Path, fault: &std::io::Error| {
        Failure::Environment(format!("cannot create link {}: {fault}", path.display()))
    };
    let failed = |source| gguf::Error::environment("create", directory, source);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let links: Vec<_> = programs
        .iter()
        .map(|name| directory.join(format!("{name}{}", std::env::consts::EXE_SUFFIX)))
        .collect();
    let found =
        links.iter().map(|link| LinkState::of(link, &program).map_err(|f| cannot(link, &f)));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    if let Some((link, _)) =
        links.iter().zip(&found).find(|(_, found)| **found == LinkState::OtherFile)
    {
        return Err(Failure::Usage(format!(
            "{} exists and is not a link to gguf: use another directory, or remove it",
            link.display()
        )));
    }
    let mut listed = Vec::new();
    for (link, found) in links.iter().zip(&found) {
        if *found == LinkState::Stale {
            std::fs::remove_file(link).map_err(|fault| cannot(link, &fault))?;
        }
        let is_created = *found != LinkState::Current;
        if is_created {
            create_link(&program, link).map_err(|fault| cannot(link, &fault))?;
        }
        if !args.json {
            writeln!(
                out,
                "{}  {}",
                if is_created { "created" } else { "exists " },
                link.display()
            )?;
        }
        listed.push(json!({ "file": link.display().to_string(), "created": is_created }));
    }
    if args.json {
        document::print(&mut out, "links/2", json!({ "links": listed }))?;
    }
    Ok(())
}

/// State of the path of a link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LinkState {
    Missing,
    /// Link to this program.
    Current,
    /// Link to a `gguf` elsewhere, perhaps of an older version.
    Stale,
    /// Another file.
    OtherFile,
}

impl LinkState {
    fn of(link: &Path, program: &Path) -> std::io::Result<Self> {
        let file = match std::fs::symlink_metadata(link) {
            Ok(file) => file,
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Missing),
            Err(fault) => return Err(fault),
        };
        if std::fs::canonicalize(link).is_ok_and(|target| target == program) {
            return Ok(Self::Current);
        }
        if file.is_symlink() {
            let target = std::fs::read_link(link)?;
            let is_gguf = target.file_stem().is_some_and(|name| name == "gguf");
            return Ok(if is_gguf { Self::Stale } else { Self::OtherFile });
        }
        Ok(if is_same_file(link, program)? { Self::Current } else { Self::OtherFile })
    }
}

#[cfg(unix)]
fn create_link(program: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(program, link)
}

/// Creates a hard link, because symbolic links need a privilege on Windows.
#[cfg(not(unix))]
fn create_link(program: &Path, link: &Path) -> std::io::Result<()> {
    std::fs::hard_link(program, link)
}

/// Whether both paths are the same file.
#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (std::fs::metadata(a)?, std::fs::metadata(b)?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Compares contents where the system provides no file identity.
#[cfg(not(unix))]
fn is_same_file(a: &Path, b: &Path) -> std::io::Result<bool> {
    let same_len = std::fs::metadata(a)?.len() == std::fs::metadata(b)?.len();
    Ok(same_len && std::fs::read(a)? == std::fs::read(b)?)
}
