//! `gguf check`: validates and repairs models.

mod report;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::Finding;
use gguf_check::codes;
use gguf_kit::Opened;
use gguf_kit::check::{CheckOptions, Repaired, readable, repair_in_place, repaired};
use serde_json::json;

use crate::commands::render_template;
use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{commands, sarif};

/// Validate a GGUF, and repair unambiguous problems.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if a finding of severity error remains after --fix, if given.\n\n\
                        Examples:\n  gguf check *.gguf\n  gguf check model.gguf --data\n  gguf check model.gguf --json --strict\n  \
                        gguf check model.gguf --fix -o fixed.gguf\n  \
                        gguf check model.gguf --tokenizer-against tokenizer.json\n  \
                        gguf check model.gguf --mmproj mmproj-model.gguf\n  \
                        gguf check model.gguf --scan\n  \
                        gguf check model.gguf --scan --template-of hf:Qwen/Qwen3-0.6B\n  \
                        gguf check --explain tensor-offset-misaligned"
)]
pub struct Args {
    /// Files, directories, shards or remote locations.
    #[arg(required_unless_present = "explain", value_name = "SOURCE")]
    sources: Vec<String>,
    /// Also check tensor data for NaN, infinity, out-of-range and all-zero values.
    #[arg(long)]
    data: bool,
    /// Treat warnings as errors.
    #[arg(long)]
    strict: bool,
    /// Check that an mmproj file matches the model.
    #[arg(long, alias = "with", value_name = "FILE")]
    mmproj: Option<String>,
    /// Compare the model's tokenizer with a tokenizer.json (file or directory) on a corpus. Shows the first
    /// texts with different ids, and the rule responsible.
    #[arg(long, value_name = "FILE")]
    tokenizer_against: Option<PathBuf>,
    /// Text to compare on, in addition to the built-in texts.
    #[arg(long, value_name = "FILE", requires = "tokenizer_against")]
    corpus: Option<PathBuf>,
    /// Also scan for manipulation: chat templates that run code, or change the prompt for certain words
    /// or dates; hidden characters; suppressed tokens. A directory may be a checkpoint.
    #[arg(long)]
    scan: bool,
    /// Compare the chat template with that of a base model: a location, a checkpoint directory, or a .jinja file.
    #[arg(long, value_name = "hf:ORG/REPO|DIR|FILE", requires = "scan")]
    template_of: Option<String>,
    /// Print findings as JSON.
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Print findings as SARIF 2.1.0, one log for all files.
    #[arg(long)]
    sarif: bool,
    /// Explain the code of a finding or an error, and what to do about it.
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// Repair unambiguous problems: lengths of per-token arrays, token types, file type, quantization version,
    /// file name.
    #[arg(long, requires = "to")]
    fix: bool,
    /// Output file, or directory for a name by the GGUF naming convention.
    #[arg(short, long, value_name = "FILE", group = "to")]
    output: Option<PathBuf>,
    /// Repair the file in place.
    #[arg(long, group = "to")]
    in_place: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(name) = &args.explain {
        return explain(name);
    }
    if args.output.as_ref().is_some_and(|output| !output.is_dir()) && args.sources.len() > 1 {
        let what = "-o is a file, but there are several inputs: use a directory";
        return Err(Failure::Usage(what.into()));
    }
    let mut log = sarif::Log::default();
    let done = commands::each(&args.sources, |source| {
        let checked = check_one(args, source, &mut log);
        if let Err(why) = checked.as_ref().map_err(Failure::in_one_line)
            && let Some(why) = why
        {
            log.add_failed(source, &why);
        }
        checked
    });
    // One log covers all files, including those that could not be read.
    if args.sarif && !matches!(done, Err(Failure::Interrupted | Failure::ClosedPipe)) {
        writeln!(std::io::stdout().lock(), "{:#}", log.to_json())?;
    }
    done
}

fn check_one(args: &Args, source: &str, log: &mut sarif::Log) -> Result<(), Failure> {
    let options = CheckOptions {
        data: args.data,
        strict: args.strict,
        with: args.mmproj.clone(),
        tokenizer_against: args.tokenizer_against.clone(),
        corpus: args.corpus.clone(),
        scan: args.scan,
        template_of: args.template_of.clone(),
    };
    let renderer = render_template::renderer()?;
    let progress = Progress::new();
    let check = |source: &str, options: &CheckOptions| {
        let report = gguf_kit::check::check(source, options, &renderer, &progress);
        progress.finish();
        report
    };
    let mut report = check(source, &options)?;
    match args.sarif {
        true => log.add(source, &report.findings()),
        false => print(args, source, &report.findings())?,
    }
    let opened = match report.opened.take() {
        None if args.fix => readable(source, &report.header)?,
        opened => opened.filter(|_| args.fix),
    };
    if let Some(opened) = opened {
        let fixed = fix(args, source, opened)?;
        let headers = CheckOptions { strict: args.strict, ..CheckOptions::default() };
        report.header = check(&fixed, &headers)?.header;
    }
    if report.has_error() { Err(Failure::Findings) } else { Ok(()) }
}

/// Prints meaning and advice of a code.
fn explain(name: &str) -> Result<(), Failure> {
    let Some(code) = codes::code(name) else {
        let near = match &codes::nearest(name)[..] {
            [] => "docs/findings.md lists all codes".to_owned(),
            near => format!("did you mean {}?", near.join(", ")),
        };
        return Err(Failure::Usage(format!("there is no code `{name}`; {near}")));
    };
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}\n\n{}\n\nWhat to do: {}", code.name, code.meaning, code.advice)?;
    Ok(())
}

fn print(args: &Args, source: &str, findings: &[Finding]) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.json {
        let findings: Vec<_> = findings.iter().map(gguf_kit::json::finding).collect();
        let document = json!({ "file": source, "findings": findings });
        document::print_one(&mut out, "check/1", document, args.sources.len() > 1)?;
    } else {
        out.write_all(report::text(source, findings).as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Writes the repaired model, and returns its path.
fn fix(args: &Args, source: &str, opened: Opened) -> Result<String, Failure> {
    let (done, fixed) = match &args.output {
        Some(output) => {
            let Repaired { job, name, done } = repaired(opened.model())?;
            let target =
                if output.is_dir() { output.join(name.to_string()) } else { output.clone() };
            let others = args.tokenizer_against.iter().chain(&args.corpus);
            let inputs = opened.files().chain(others.map(PathBuf::as_path));
            commands::write(&job, &target, &args.force.protecting(inputs))?;
            (done, target.to_string_lossy().into_owned())
        }
        None => {
            // This process must not keep the file open while it changes.
            drop(opened);
            (repair_in_place(Path::new(source))?, source.to_owned())
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
