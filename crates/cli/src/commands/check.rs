//! `gguf check`: everything that is wrong or odd about a model, and its repair.

mod against;

use std::io::Write;
use std::path::{Path, PathBuf};

use gguf::{Finding, ModelName, Severity, check_shards, codes, schema};
use gguf_compare::scan;
use gguf_pipeline::Job;
use gguf_remote::Location;
use gguf_store::edit::edit_header;
use gguf_store::{LocalFile, Model, ShardSet};
use gguf_tokenizer::Linter;
use serde_json::{Value as Json, json};

use crate::failure::Failure;
use crate::force::Force;
use crate::opened::{Checkable, Far, Opened};
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
    let judged = |mut findings: Vec<Finding>| {
        if args.strict {
            let warnings = findings.iter_mut().filter(|one| one.severity == Severity::Warning);
            warnings.for_each(|warning| warning.severity = Severity::Error);
        }
        findings
    };
    let header = judged(header_findings(args.source())?);
    let readable = if args.data || args.fix { readable(args.source(), &header)? } else { None };
    let mut beyond = Vec::new();
    if let Some(opened) = readable.as_ref().filter(|_| args.data) {
        let model = opened.model();
        let progress = Progress::new(model.byte_len(), "reading");
        beyond.extend(judged(scan(model, &progress)?));
        progress.finish();
    }
    if let Some(other) = &args.tokenizer_against {
        beyond.extend(judged(against::compare(args.source(), other, args.corpus.as_deref())?));
    }
    let mut errors = has_error(&header) || has_error(&beyond);
    print(args, &[header, beyond.clone()].concat())?;
    if let Some(opened) = readable.filter(|_| args.fix) {
        let fixed = fix(args, opened)?;
        errors = has_error(&judged(header_findings(&fixed)?)) || has_error(&beyond);
    }
    if errors { Err(Failure::Findings) } else { Ok(()) }
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

fn has_error(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| finding.severity == Severity::Error)
}

/// The model, unless it breaks the format, which is among the findings.
fn readable(source: &str, findings: &[Finding]) -> Result<Option<Opened>, Failure> {
    match Opened::open(source) {
        Err(Failure::Input(_)) if has_error(findings) => Ok(None),
        opened => opened.map(Some),
    }
}

/// What the rules find in the headers of all files of a model, which may be faulty ones.
fn header_findings(source: &str) -> Result<Vec<Finding>, Failure> {
    let location = Location::parse(source)?;
    let Location::Path(path) = &location else {
        let files = Far::open_all(&location)?;
        return findings_in(&files.iter().map(Far::checkable).collect::<Vec<_>>());
    };
    let (paths, mut findings) = match ShardSet::find(path) {
        Ok(set) => (set.paths().to_vec(), Vec::new()),
        Err(gguf::Error::File(finding)) => (vec![path.clone()], vec![*finding]),
        Err(other) => return Err(other.into()),
    };
    let mut files = Vec::new();
    for path in paths.iter().filter(|path| path.is_file()) {
        match LocalFile::open(path) {
            Ok(file) => files.push((path, file)),
            // An edit was interrupted: until it is ended, there is nothing else to say.
            Err(gguf::Error::File(finding)) => return Ok(vec![*finding]),
            Err(other) => return Err(other.into()),
        }
    }
    let files = files.iter().map(|(name, file)| Checkable {
        name,
        header: file.mapped(),
        file_len: file.mapped().len() as u64,
    });
    findings.extend(findings_in(&files.collect::<Vec<_>>())?);
    Ok(findings)
}

/// What the rules find in each file, and in all of them together.
fn findings_in(files: &[Checkable]) -> Result<Vec<Finding>, Failure> {
    let mut findings = Vec::new();
    let mut templates = Linter::new(commands::render_template::renderer()?);
    let mut drafts = Vec::new();
    for file in files {
        let (found, draft) = file.check();
        let metadata = draft.as_ref().map(|draft| &draft.metadata);
        let of_templates = metadata.map(|metadata| templates.lint(metadata)).transpose()?;
        let found = found.into_iter().chain(of_templates.unwrap_or_default());
        findings.extend(found.map(|finding| match files.len() {
            1 => finding,
            _ => in_file(finding, file.name),
        }));
        drafts.extend(draft.map(|draft| (file.name, draft)));
    }
    // With one of them unreadable, the others would be blamed for it.
    if drafts.len() == files.len() {
        let drafts: Vec<_> = drafts.iter().map(|(path, draft)| (*path, draft)).collect();
        findings.extend(check_shards(&drafts));
    }
    Ok(findings)
}

/// Of several files, which one.
fn in_file(finding: Finding, path: &Path) -> Finding {
    let message = format!("{}: {}", path.display(), finding.message).into();
    Finding { message, ..finding }
}

fn print(args: &Args, findings: &[Finding]) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if args.sarif {
        writeln!(out, "{:#}", sarif::log(args.source(), findings))?;
    } else if args.json {
        let findings: Vec<_> = findings.iter().map(finding_json).collect();
        writeln!(out, "{:#}", json!({ "file": args.source(), "findings": findings }))?;
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
    let mut done = Vec::new();
    let mut fixed = args.source().to_owned();
    if args.in_place {
        // Nothing of ours may have the file open while it changes.
        drop(opened);
        let files = ShardSet::find(Path::new(args.source()))?;
        let [path] = files.paths() else {
            return Err(Failure::Usage("only a single file can be repaired in place".into()));
        };
        edit_header(path, 0, &(), |draft| {
            done = gguf::fix(draft);
            Ok::<_, Failure>(())
        })?;
    } else if let Some(output) = &args.output {
        let model = opened.model();
        let mut draft = model.to_draft()?;
        done = gguf::fix(&mut draft);
        let target = if output.is_dir() {
            output.join(proper_name(&draft.metadata, model))
        } else {
            output.clone()
        };
        let job = Job { metadata: draft.metadata, ..Job::copy(model) };
        let others = args.tokenizer_against.iter().chain(&args.corpus);
        let overwrite = args.force.sparing(opened.files().chain(others.map(PathBuf::as_path)));
        commands::write(&job, &target, &overwrite)?;
        fixed = target.to_string_lossy().into_owned();
    }
    for what in &done {
        eprintln!("{what}");
    }
    if done.is_empty() {
        eprintln!("nothing to repair");
    }
    Ok(fixed)
}

fn proper_name(metadata: &gguf::Metadata, model: &Model) -> String {
    let file_type = metadata.u64("general.file_type").and_then(schema::file_type);
    let mut name = ModelName::from_metadata(metadata, file_type.map(|file_type| file_type.name));
    commands::name::complete(&mut name, model.tensors().iter().map(|tensor| &tensor.info));
    name.to_string()
}
