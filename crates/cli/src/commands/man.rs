//! `gguf man`: manual pages.

use std::path::{Path, PathBuf};

use clap::Command;
use clap_mangen::Man;
use gguf_store::AtomicFile;

use crate::failure::Failure;
use crate::force::Force;

/// Generate manual pages, one per command.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf man ~/.local/share/man/man1")]
pub struct Args {
    /// Output directory, created if missing.
    dir: PathBuf,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut command = crate::command();
    command.build();
    let failed = |source| gguf::Error::environment("create", &args.dir, source);
    std::fs::create_dir_all(&args.dir).map_err(failed)?;
    let overwrite = args.force.protecting::<&Path>([]);
    let mut pages = Vec::new();
    collect(&command, &mut pages);
    let paths: Vec<_> = pages.iter().map(|(name, _)| args.dir.join(name)).collect();
    paths.iter().try_for_each(|path| overwrite.check(path))?;
    let complete = |(path, (_, page)): (&PathBuf, &(_, Vec<u8>))| -> Result<_, gguf::Error> {
        let output = AtomicFile::create(path, &overwrite)?;
        output.write_at(page, 0)?;
        Ok(output)
    };
    // Files are renamed after all are complete.
    let outputs = paths.iter().zip(&pages).map(complete).collect::<Result<Vec<_>, _>>()?;
    outputs.into_iter().try_for_each(AtomicFile::commit)?;
    eprintln!("wrote {} pages to {}", pages.len(), args.dir.display());
    Ok(())
}

/// Collects the pages of a command and its subcommands.
fn collect(command: &Command, pages: &mut Vec<(String, Vec<u8>)>) {
    let man = Man::new(command.clone());
    let mut page = Vec::new();
    // Writing to memory cannot fail.
    let _ = man.render(&mut page);
    pages.push((man.get_filename(), page));
    let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
    shown.for_each(|command| collect(command, pages));
}
