//! `gguf check`: everything that is wrong or odd about a model, and its repair.

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::{Finding, Severity, codes};
use gguf_kit::Opened;
use gguf_kit::check::{Options, Repaired, check, readable, repair_in_place, repaired};
use serde_json::{Value as Json, json};

use crate::commands::render_template;
use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{commands, sarif};

/// List everything that is wrong or odd about a GGUF.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if there is a finding of severity error, which after --fix is still \
                        there.\n\n\
                        Examples:\n  gguf check model.gguf --data\n  gguf check model.gguf --json --strict\n  \
                        gguf check model.gguf --fix -o fixed.gguf\n  \
                        gguf check model.gguf --tokenizer-against tokenizer.json\n  \
                        gguf check --explain tensor-offset-misaligned"
)]
pub struct Args {
    /// File, directory, shard or far location to check.
    #[arg(required_unless_present = "explain")]
    source: Option<String>,
    /// Look at all tensor data too: values that are no numbers, absurd or all zero.
    #[arg(long)]
    data: bool,
    /// Take warnings for errors.
    #[arg(long)]
    strict: bool,
    /// Encode a corpus with the model's tokenizer and with this tokenizer.json (or the one in this
    /// directory), and show the first texts with other ids and the rule that makes them so.
    #[arg(long, value_name = "FILE")]
    tokenizer_against: Option<PathBuf>,
    /// A text to compare on, besides the short ones that are built in.
    #[arg(long, value_name = "FILE", requires = "tokenizer_against")]
    corpus: Option<PathBuf>,
    /// Findings as JSON.
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Findings as SARIF 2.1.0.
    #[arg(long)]
    sarif: bool,
    /// Say what the code of a finding or an error means, and what to do about it.
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// Repair what can only be meant in one way: lengths of per-token arrays, token types, file
    /// type, quantization version, file name.
    #[arg(long, requires = "to")]
    fix: bool,
    /// Where to write the repaired file; in a directory, it is named by the convention.
    #[arg(short, long, value_name = "FILE", group = "to")]
    output: Option<PathBuf>,
    /// Repair the file itself.
    #[arg(long, group = "to")]
    in_place: bool,
    #[command(flatten)]
    force: Force,
}

impl Args {
    /// What is checked; not asked for where a code is explained.
    fn source(&self) -> &str {
        self.source.as_deref().unwrap_or_default()
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(name) = &args.explain {
        return explain(name);
    }
    let options = Options {
        data: args.data,
        strict: args.strict,
        tokenizer_against: args.tokenizer_against.clone(),
        corpus: args.corpus.clone(),
    };
    let renderer = render_template::renderer()?;
    let progress = Progress::new();
    let look = |source: &str, options: &Options| {
        let report = check(source, options, &renderer, &progress);
        progress.finish();
        report
    };
    let mut report = look(args.source(), &options)?;
    print(args, &report.findings())?;
    let opened = match report.opened.take() {
        None if args.fix => readable(args.source(), &report.header)?,
        opened => opened.filter(|_| args.fix),
    };
    if let Some(opened) = opened {
        let fixed = fix(args, opened)?;
        let headers = Options { strict: args.strict, ..Options::default() };
        report.header = look(&fixed, &headers)?.header;
    }
    if report.has_error() { Err(Failure::Findings) } else { Ok(()) }
}

/// Prints what the table says of a code.
fn explain(name: &str) -> Result<(), Failure> {
    let Some(code) = codes::code(name) else {
        let near = match &codes::nearest(name)[..] {
            [] => "docs/findings.md lists them".to_owned(),
            near => format!("the nearest are {}", near.join(", ")),
        };
        return Err(Failure::Usage(format!("there is no code `{name}`; {near}")));
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}\n\n{}\n\nWhat to do: {}", code.name, code.meaning, code.advice)?;
    Ok(())
}

fn print(args: &Args, findings: &[Finding]) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.sarif {
        writeln!(out, "{:#}", sarif::log(args.source(), findings))?;
    } else if args.json {
        let findings: Vec<_> = findings.iter().map(finding_json).collect();
        let document = json!({ "file": args.source(), "findings": findings });
        document::print(&mut out, "check/1", document)?;
    } else {
        for finding in findings {
            writeln!(out, "{:<7} {:<28} {finding}", finding.severity, finding.code)?;
        }
        let count = |severity| findings.iter().filter(|f| f.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        match findings.len() {
            0 => writeln!(out, "{}: no findings", args.source())?,
            all => writeln!(
                out,
                "{}: {errors} errors, {warnings} warnings, {} notes",
                args.source(),
                all - errors - warnings
            )?,
        }
    }
    out.flush()?;
    Ok(())
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

/// Writes the repaired model, and says where.
fn fix(args: &Args, opened: Opened) -> Result<String, Failure> {
    let (done, fixed) = match &args.output {
        Some(output) => {
            let Repaired { job, name, done } = repaired(opened.model())?;
            let target =
                if output.is_dir() { output.join(name.to_string()) } else { output.clone() };
            let others = args.tokenizer_against.iter().chain(&args.corpus);
            let inputs = opened.files().chain(others.map(PathBuf::as_path));
            commands::write(&job, &target, &args.force.sparing(inputs))?;
            (done, target.to_string_lossy().into_owned())
        }
        None => {
            // Nothing of ours may have the file open while it changes.
            drop(opened);
            (repair_in_place(Path::new(args.source()))?, args.source().to_owned())
        }
    };
    for what in &done {
        eprintln!("{what}");
    }
    if done.is_empty() {
        eprintln!("nothing to repair");
    }
    Ok(fixed)
}
