//! `gguf check`: everything that is wrong or odd about a file.

use std::io::Write;
use std::path::PathBuf;

use gguf::{Finding, Map, Severity};
use serde_json::{Value as Json, json};

use crate::failure::Failure;

/// List everything that is wrong or odd about a GGUF.
#[derive(clap::Args)]
#[command(after_help = "Exit code 1 if there is a finding of severity error.\n\n\
                        Example:\n  gguf check model.gguf --json")]
pub struct Args {
    /// File to check.
    file: PathBuf,
    /// Findings as JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let map = Map::open(&args.file)?;
    let (findings, _) = gguf::check(&map);
    let errors = findings.iter().filter(|finding| finding.severity == Severity::Error).count();
    let mut out = std::io::stdout().lock();
    if args.json {
        let findings: Vec<_> = findings.iter().map(finding_json).collect();
        writeln!(
            out,
            "{:#}",
            json!({ "file": args.file.display().to_string(), "findings": findings })
        )?;
    } else {
        for finding in &findings {
            writeln!(out, "{:<7} {:<28} {finding}", finding.severity, finding.code)?;
        }
        let others = findings.len() - errors;
        match (errors, others) {
            (0, 0) => writeln!(out, "{}: no findings", args.file.display())?,
            _ => writeln!(out, "{}: {errors} errors, {others} others", args.file.display())?,
        }
    }
    if errors > 0 { Err(Failure::Findings) } else { Ok(()) }
}

fn finding_json(finding: &Finding) -> Json {
    json!({
        "code": finding.code,
        "severity": finding.severity.to_string(),
        "offset": finding.offset,
        "key": finding.key,
        "tensor": finding.tensor,
        "message": finding.message,
        "help": finding.help,
    })
}
