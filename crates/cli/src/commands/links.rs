//! `gguf links`: the names of other programs, for this one.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::launch;
use crate::old::{PROGRAMS, page};

/// Make links under the names of llama.cpp's programs.
///
/// Through them gguf does the work of llama.cpp's programs and of the scripts of the Python package `gguf`,
/// with their flags.
///
/// A file that is there and is no link to gguf stays as it is, and then no link is made.
#[derive(clap::Args)]
#[command(
    after_help = "`NAME --help` lists the flags of each, with what becomes of them; without \
                  links, `gguf NAME` does the same.\n\n\
                  Example:\n  gguf links ~/.local/bin && llama-quantize --help"
)]
pub struct Args {
    /// The directory, best one of those in PATH; made if it is not there.
    #[arg(required_unless_present = "page")]
    directory: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    /// Print the table of every program's flags, as Markdown.
    #[arg(long, hide = true)]
    page: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let Some(directory) = args.directory.as_deref().filter(|_| !args.page) else {
        return Ok(out.write_all(page().as_bytes())?);
    };
    let program = launch::file()?;
    let cannot = |path: &Path, fault: &std::io::Error| {
        Failure::Environment(format!("cannot make a link at {}: {fault}", path.display()))
    };
    let failed = |source| gguf::Error::environment("create", directory, source);
    std::fs::create_dir_all(directory).map_err(failed)?;
    let links: Vec<_> = PROGRAMS
        .iter()
        .map(|old| directory.join(format!("{}{}", old.name, std::env::consts::EXE_SUFFIX)))
        .collect();
    let found = links.iter().map(|link| Found::at(link, &program).map_err(|f| cannot(link, &f)));
    let found = found.collect::<Result<Vec<_>, _>>()?;
    if let Some((link, _)) = links.iter().zip(&found).find(|(_, found)| **found == Found::Other) {
        return Err(Failure::Usage(format!(
            "{} is there and is no link to gguf: name another directory, or remove it",
            link.display()
        )));
    }
    let mut listed = Vec::new();
    for (link, found) in links.iter().zip(&found) {
        if *found == Found::Stale {
            std::fs::remove_file(link).map_err(|fault| cannot(link, &fault))?;
        }
        let made = *found != Found::Ours;
        if made {
            make(&program, link).map_err(|fault| cannot(link, &fault))?;
        }
        if !args.json {
            writeln!(out, "{}  {}", if made { "made    " } else { "is there" }, link.display())?;
        }
        listed.push(json!({ "file": link.display().to_string(), "made": made }));
    }
    if args.json {
        document::print(&mut out, "links/1", json!({ "links": listed }))?;
    }
    Ok(())
}

/// What is where a link is to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nothing,
    /// A link to this program.
    Ours,
    /// A link to a program of this name elsewhere, perhaps of an older version.
    Stale,
    /// Something else.
    Other,
}

impl Found {
    fn at(link: &Path, program: &Path) -> std::io::Result<Self> {
        let file = match std::fs::symlink_metadata(link) {
            Ok(file) => file,
            Err(fault) if fault.kind() == std::io::ErrorKind::NotFound => return Ok(Self::Nothing),
            Err(fault) => return Err(fault),
        };
        if std::fs::canonicalize(link).is_ok_and(|target| target == program) {
            return Ok(Self::Ours);
        }
        if file.is_symlink() {
            let target = std::fs::read_link(link)?;
            let is_gguf = target.file_stem().is_some_and(|name| name == "gguf");
            return Ok(if is_gguf { Self::Stale } else { Self::Other });
        }
        Ok(if is_same_file(link, program)? { Self::Ours } else { Self::Other })
    }
}

#[cfg(unix)]
fn make(program: &Path, link: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(program, link)
}

/// Symbolic links need a privilege elsewhere, other names of a file do not.
#[cfg(not(unix))]
fn make(program: &Path, link: &Path) -> std::io::Result<()> {
    std::fs::hard_link(program, link)
}

/// Whether both are names of one file.
#[cfg(unix)]
fn is_same_file(a: &Path, b: &Path) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (a, b) = (std::fs::metadata(a)?, std::fs::metadata(b)?);
    Ok((a.dev(), a.ino()) == (b.dev(), b.ino()))
}

/// Where systems do not say, files of the same bytes are one.
#[cfg(not(unix))]
fn is_same_file(a: &Path, b: &Path) -> std::io::Result<bool> {
    let same_len = std::fs::metadata(a)?.len() == std::fs::metadata(b)?.len();
    Ok(same_len && std::fs::read(a)? == std::fs::read(b)?)
}
