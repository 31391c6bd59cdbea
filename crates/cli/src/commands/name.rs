//! `gguf name`: file names by the GGUF naming convention.

use std::io::Write;
use std::path::PathBuf;

use gguf::{ModelName, NameShard};
use serde_json::{Value as Json, json};

use crate::document;
use crate::failure::Failure;
use crate::terminal;

/// Show the parts of file names, or canonical names.
///
/// File names follow the GGUF naming convention.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if a name does not follow the convention (without --canonical). A missing version \
                  is accepted, because programs often do not know it.\n\n\
                  Examples:\n  gguf name Mixtral-8x7B-v0.1-KQ2.gguf\n  gguf name --rename *.gguf"
)]
pub struct Args {
    /// File names. The files need to exist only for --canonical and --rename.
    #[arg(required = true)]
    files: Vec<PathBuf>,
    /// Show the canonical name of each file, derived from its metadata.
    #[arg(long, alias = "proper")]
    canonical: bool,
    /// Rename each file to its canonical name. Never replaces a file.
    #[arg(long)]
    rename: bool,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let mut entries = Vec::new();
    let mut unconventional = false;
    for file in &args.files {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        // Names as programs write them are accepted; deviations from the convention are reported.
        let parsed = ModelName::parse_lenient(&name);
        let mut entry = json!({ "file": file.display().to_string() });
        match &parsed {
            Ok(parsed) => {
                entry["parts"] = parts(parsed);
                if let Err(deviation) = name.parse::<ModelName>() {
                    entry["deviation"] = deviation.to_string().into();
                }
            }
            Err(fault) => entry["message"] = fault.to_string().into(),
        }
        if args.canonical || args.rename {
            let canonical = gguf_kit::name::canonical(file)?.to_string();
            if args.rename {
                gguf_kit::name::rename(file, &canonical)?;
            }
            entry["canonical"] = canonical.into();
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
            document::print_one(&mut out, "name/2", entry, several)?;
        }
    }
    if unconventional { Err(Failure::Findings) } else { Ok(()) }
}

fn print(out: &mut impl Write, entry: &Json) -> Result<(), Failure> {
    writeln!(out, "{}", entry["file"].as_str().unwrap_or_default())?;
    if let Some(canonical) = entry["canonical"].as_str() {
        writeln!(out, "  canonical     {canonical}")?;
    }
    if let Some(fault) = entry["message"].as_str() {
        let text = format!("does not follow the convention: {fault}");
        writeln!(out, "{}", terminal::wrap(&text, "  "))?;
    }
    if let Some(deviation) = entry["deviation"].as_str().filter(|_| terminal::is_verbose()) {
        let text = format!("deviates from the convention: {deviation}");
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
