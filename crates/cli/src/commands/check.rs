//! `gguf check`: validates and repairs models.

mod against;
mod report;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::{Finding, Severity};
use gguf_check::codes;
use gguf_kit::Opened;
use gguf_kit::check::{
    CheckOptions, CheckReport, DataCheck, Repaired, models, readable, repair_in_place, repaired,
};
use gguf_tokenizer::template::Renderer;
use serde_json::json;

use self::against::Against;
use crate::commands::render_template;
use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{commands, sarif};

/// Validate a GGUF, and repair unambiguous problems.
#[derive(clap::Args)]
#[command(
    after_help = "Exit code 1 if a finding of severity error remains after --fix or --repair, if given.\n\n\
                        Examples:\n  gguf check *.gguf\n  gguf check model.gguf --data\n  gguf check model.gguf --json --strict\n  \
                        gguf check model.gguf --fix -o fixed.gguf\n  \
                        gguf check model-q4.gguf --against hf:org/repo-GGUF:Q4_K_M --repair\n  \
                        gguf check model.gguf --tokenizer-against tokenizer.json\n  \
                        gguf check model.gguf --mmproj mmproj-model.gguf\n  \
                        gguf check model.gguf --scan\n  \
                        gguf check model.gguf --scan --template-of hf:Qwen/Qwen3-0.6B\n  \
                        gguf check model.gguf --upstream hf:org/repo\n  \
                        gguf check --explain tensor-offset-misaligned"
)]
pub struct Args {
    /// Files, directories, shards or remote locations.
    #[arg(required_unless_present = "explain", value_name = "SOURCE")]
    sources: Vec<String>,
    /// Also check tensor data for NaN, infinity, out-of-range values and holes [default: for local models below
    /// 1 GB].
    #[arg(long)]
    data: bool,
    /// Do not read tensor data.
    #[arg(long, conflicts_with = "data")]
    no_data: bool,
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
    /// Compare the prompts of the chat template with those of the original model: a checkpoint directory,
    /// hf:org/repo or a GGUF. Without SOURCE, of the base model that the file names.
    #[arg(long, value_name = "SOURCE", num_args = 0..=1, default_missing_value = "")]
    upstream: Option<String>,
    /// Find out whether Ollama replaces the chat template by its own: the folder `template` of Ollama's repository.
    #[arg(long, value_name = "DIR")]
    ollama_templates: Option<PathBuf>,
    /// Print findings as JSON.
    #[arg(long, conflicts_with = "sarif")]
    json: bool,
    /// Print findings as SARIF 2.1.0, one log for all files.
    #[arg(long)]
    sarif: bool,
    /// Explain the code of a finding or an error, and what to do about it.
    #[arg(long, value_name = "CODE", exclusive = true)]
    explain: Option<String>,
    /// Repair unambiguous problems: lengths of per-token arrays, token types, padding tokens, end tokens,
    /// pre-tokenizer, counts, file type, quantization version, file name.
    #[arg(long, requires = "to")]
    fix: bool,
    /// Compare the file with the remote file that it is a copy of, by length and digest. Of a repository with
    /// several files, with the one of the same name.
    #[arg(long, value_name = "LOCATION")]
    against: Option<String>,
    /// Fetch the missing and damaged ranges of the remote file. In place, unless -o is given.
    #[arg(long, requires = "against")]
    repair: bool,
    /// Output file of --fix or --repair, or directory: --fix chooses a name by the GGUF naming convention.
    #[arg(short, long, value_name = "FILE", group = "to")]
    output: Option<PathBuf>,
    /// Write the result of --fix or --repair into the file itself.
    #[arg(long, group = "to")]
    in_place: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    if let Some(name) = &args.explain {
        return explain(name);
    }
    require_consistent(args)?;
    let sources = models(&args.sources)?;
    let several = sources.len() > 1;
    if args.output.as_ref().is_some_and(|output| !output.is_dir()) && several {
        let what = "-o is a file, but there are several inputs: use a directory";
        return Err(Failure::Usage(what.into()));
    }
    if args.against.is_some() && several {
        let what = "--against compares one file, but there are several: name one";
        return Err(Failure::Usage(what.into()));
    }
    let mut log = sarif::Log::default();
    let done = commands::each(&sources, |source| {
        let checked = check_one(args, source, several, &mut log);
        if let Err(why) = checked.as_ref().map_err(Failure::in_one_line)
            && let Some(why) = why
        {
            log.add_failed(&gguf_kit::redact(source), &why);
        }
        checked
    });
    // One log covers all files, including those that could not be read.
    if args.sarif && !matches!(done, Err(Failure::Interrupted | Failure::ClosedPipe)) {
        writeln!(std::io::stdout().lock(), "{:#}", log.to_json())?;
    }
    done
}

/// Refuses options that have no effect together.
fn require_consistent(args: &Args) -> Result<(), Failure> {
    let writes = args.output.is_some() || args.in_place;
    let what = match (args.fix, args.repair) {
        (true, true) => {
            "--repair restores the bytes of the remote file, and --fix changes them: repair first, then fix"
        }
        (false, false) if writes => "-o and --in-place need --fix, or --against with --repair",
        _ => return Ok(()),
    };
    Err(Failure::Usage(what.into()))
}

fn check_one(
    args: &Args,
    source: &str,
    several: bool,
    log: &mut sarif::Log,
) -> Result<(), Failure> {
    let against = args.against.as_deref().map(|location| against::compare(args, source, location));
    let against = against.transpose()?;
    let source = against.as_ref().map_or(source, |against| &against.file);
    let options = CheckOptions {
        data: match (args.data, args.no_data) {
            (true, _) => DataCheck::Always,
            (_, true) => DataCheck::Never,
            _ => DataCheck::IfSmall,
        },
        strict: args.strict,
        with: args.mmproj.clone(),
        tokenizer_against: args.tokenizer_against.clone(),
        corpus: args.corpus.clone(),
        scan: args.scan,
        template_of: args.template_of.clone(),
        upstream: args.upstream.clone(),
        ollama_templates: args.ollama_templates.clone(),
    };
    let renderer = render_template::renderer()?;
    let progress = Progress::new();
    let check = |source: &str, options: &CheckOptions| {
        let report = gguf_kit::check::check(source, options, &renderer, &progress);
        progress.finish();
        report
    };
    let difference = against.as_ref().and_then(|against| against.finding(args.strict));
    let is_copy = difference.as_ref().is_none_or(|finding| finding.severity != Severity::Error);
    // The findings about a damaged file would only be consequences.
    let mut report = match is_copy {
        true => check(source, &options)?,
        false => CheckReport::default(),
    };
    report.other.extend(difference);
    match args.sarif {
        true => log.add(&gguf_kit::redact(source), &report.findings()),
        false => {
            let shown = Shown {
                source: &gguf_kit::redact(source),
                findings: &report.findings(),
                data_read: report.opened.is_some(),
                against: against.as_ref(),
            };
            print(args, &shown, several)?;
        }
    }
    if !is_copy {
        return Err(Failure::Findings);
    }
    let opened = match report.opened.take() {
        None if args.fix => readable(source, &report.header)?,
        opened => opened.filter(|_| args.fix),
    };
    if let Some(opened) = opened {
        let fixed = fix(args, source, opened, &renderer)?;
        let headers =
            CheckOptions { strict: args.strict, data: DataCheck::Never, ..CheckOptions::default() };
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

/// Result of a check, as it is printed.
struct Shown<'r> {
    source: &'r str,
    findings: &'r [Finding],
    /// Whether tensor data was read.
    data_read: bool,
    /// Comparison with a remote file.
    against: Option<&'r Against>,
}

fn print(args: &Args, shown: &Shown, several: bool) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.json {
        let findings: Vec<_> = shown.findings.iter().map(gguf_kit::json::finding).collect();
        let document = json!({
            "file": shown.source,
            "data_read": shown.data_read,
            "against": shown.against.map(Against::to_json),
            "findings": findings,
        });
        document::print_one(&mut out, "check/2", document, several)?;
    } else {
        let text = report::text(shown.source, shown.findings, shown.data_read);
        out.write_all(text.as_bytes())?;
    }
    out.flush()?;
    Ok(())
}

/// Writes the repaired model, and returns its path; writes nothing and returns the source if nothing is to repair.
fn fix(args: &Args, source: &str, opened: Opened, renderer: &Renderer) -> Result<String, Failure> {
    let (done, fixed) = match &args.output {
        Some(output) => {
            let Repaired { job, name, mut done } = repaired(opened.model(), renderer)?;
            let target =
                if output.is_dir() { output.join(name.to_string()) } else { output.clone() };
            // The name is repaired only in a directory, where it is not given.
            let is_named = !output.is_dir() || target.file_name() == Path::new(source).file_name();
            if !is_named {
                done.push(format!("named it {name}"));
            }
            if done.is_empty() {
                eprintln!("nothing to repair; wrote nothing");
                return Ok(source.to_owned());
            }
            let others = args.tokenizer_against.iter().chain(&args.corpus);
            let inputs = opened.files().chain(others.map(PathBuf::as_path));
            commands::write(&job, &target, &args.force.protecting(inputs))?;
            (done, target.to_string_lossy().into_owned())
        }
        None => {
            // This process must not keep the file open while it changes.
            drop(opened);
            (repair_in_place(Path::new(source), renderer)?, source.to_owned())
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
