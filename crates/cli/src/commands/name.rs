//! `gguf name`: file names by the naming convention.

use std::io::Write;
use std::path::PathBuf;

use gguf::{ModelName, NameShard};
use serde_json::{Value as Json, json};

use crate::document;
use crate::failure::Failure;
use crate::terminal;

/// Show the parts of file names, or the names files should have.
///
/// Names follow the naming convention of GGUF files.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if a name does not follow the convention (without --proper). Names as \
                  programs make them, which have no version where none is known, do.\n\n\
                  Examples:\n  gguf name Mixtral-8x7B-v0.1-KQ2.gguf\n  gguf name --rename *.gguf"
)]
pub struct Args {
    /// File names; the files need not exist unless the proper name is asked for.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show the name that each file should have, from its metadata.
    #[arg(long)]
    proper: bool,
    /// Give each file that name; never replaces another file.
    #[arg(long)]
    rename: bool,
    /// As JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let mut entries = Vec::new();
    let mut unconventional = false;
    for file in &args.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // What programs make of what they know is no fault; what the convention misses is said.
        let parsed = ModelName::parse_usual(&name);
        let mut entry = json!({ "file": file.display().to_string() });
        match &parsed {
            Ok(parsed) => {
                entry["parts"] = parts(parsed);
                if let Err(misses) = name.parse::<ModelName>() {
                    entry["misses"] = misses.to_string().into();
                }
            }
            Err(fault) => entry["message"] = fault.to_string().into(),
        }
        if args.proper || args.rename {
            let proper = gguf_kit::name::canonical(file)?.to_string();
            if args.rename {
                gguf_kit::name::rename(file, &proper)?;
            }
            entry["proper"] = proper.into();
        } else {
            unconventional |= parsed.is_err();
        }
        if !args.json {
            print(&mut out, &entry)?;
        }
        entries.push(entry);
    }
    if args.json {
        let several = entries.len() > 1;
        for entry in entries {
            document::print_one(&mut out, "name/1", entry, several)?;
        }
    }
    if unconventional { Err(Failure::Findings) } else { Ok(()) }
}

fn print(out: &mut impl Write, entry: &Json) -> Result<(), Failure> {
    writeln!(out, "{}", entry["file"].as_str().unwrap_or_default())?;
    if let Some(proper) = entry["proper"].as_str() {
        writeln!(out, "  proper name   {proper}")?;
    }
    if let Some(fault) = entry["message"].as_str() {
        let text = format!("not by the convention: {fault}");
        writeln!(out, "{}", terminal::wrap(&text, "  "))?;
    }
    if let Some(misses) = entry["misses"].as_str().filter(|_| terminal::is_verbose()) {
        let text = format!("the convention misses: {misses}");
        writeln!(out, "{}", terminal::wrap(&text, "  "))?;
    }
    for (part, value) in entry["parts"].as_object().into_iter().flatten() {
        match value {
            Json::Null => {}
            Json::String(text) => writeln!(out, "  {part:<13} {text}")?,
            other => writeln!(out, "  {part:<13} {other}")?,
        }
    }
    Ok(())
}

fn parts(name: &ModelName) -> Json {
    json!({
        "sidecar": name.sidecar.map(|sidecar| sidecar.name()),
        "base_name": name.base_name,
        "size_label": name.size_label,
        "fine_tune": name.fine_tune,
        "version": name.version,
        "encoding": name.encoding,
        "type": name.kind.map(|kind| kind.name()),
        "shard": name.shard.map(|NameShard { number, count }| json!([number, count])),
    })
}
