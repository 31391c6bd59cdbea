//! `llama-gguf-hash`, and `gguf_hash.py` of the Python package.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use gguf_inspect::{Algorithm, HashOptions, Manifest, Outcome, Tally, hash};
use gguf_kit::{open, read_text};

use super::arguments::Arguments;
use super::flag::{Flag, help, ignored, translated};
use super::{ArgumentStyle, Program};
use crate::failure::Failure;
use crate::progress::Progress;

pub const LLAMA: Program = Program {
    name: "llama-gguf-hash",
    command: "gguf hash",
    positionals: "GGUF_IN",
    style: ArgumentStyle::LlamaCpp,
    example: "--check model.gguf.manifest model.gguf",
    flags: &[LLAMA_FLAGS],
    run: run_llama,
};

pub const PACKAGE: Program = Program {
    name: "gguf-hash",
    command: "gguf hash --sha1 --sha256 --uuid",
    positionals: "model",
    style: ArgumentStyle::Package,
    example: "--no-layer model.gguf",
    flags: &[PACKAGE_FLAGS],
    run: run_package,
};

const LLAMA_FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--xxh64", 0, "`--xxh64`"),
    translated("--sha1", 0, "`--sha1`"),
    translated("--sha256", 0, "`--sha256`"),
    translated("--all", 0, "`--all`"),
    translated("--no-layer", 0, "`--no-layer`"),
    translated("--uuid", 0, "`--uuid`"),
    translated("-c --check", 1, "`--check`; exit codes 1 and 3 to 5 are those of the original"),
];

const PACKAGE_FLAGS: &[Flag] = &[
    help("-h --help"),
    translated("--no-layer", 0, "`--no-layer`"),
    ignored("--verbose", 0, "there is no further output"),
    ignored("--progressbar", 0, "progress is shown on terminals"),
];

/// Exit codes of the original.
const FAILURE: u8 = 1;
const MISSING_ENTRY: u8 = 3;
const UNKNOWN_HASH: u8 = 4;
const NO_MANIFEST: u8 = 5;

fn run_llama(arguments: &Arguments) -> Result<u8, Failure> {
    let [model] = arguments.positions(["GGUF_IN"])?;
    let mut algorithms: Vec<_> = Algorithm::ALL
        .into_iter()
        .filter(|algorithm| {
            let all = arguments.has("--all") && *algorithm != Algorithm::Uuid;
            all || arguments.has(&format!("--{}", algorithm.name()))
        })
        .collect();
    let mut out = std::io::stdout().lock();
    let path = arguments.value("--check");
    let mut manifest = None;
    if let Some(path) = path {
        let Ok(text) = read_text(Path::new(path)) else {
            write!(out, "ERROR cannot open manifest {path}")?;
            return Ok(NO_MANIFEST);
        };
        let read: Manifest = text.parse().unwrap_or_default();
        let Some(strongest) = read.strongest() else {
            write!(out, "ERROR manifest does not have any known hash format in {path}")?;
            return Ok(UNKNOWN_HASH);
        };
        write!(out, "manifest  {path}")?;
        let order = [Algorithm::Sha256, Algorithm::Sha1, Algorithm::Xxh64, Algorithm::Uuid];
        for algorithm in order.into_iter().filter(|one| read.algorithms().contains(one)) {
            write!(out, "  {algorithm}")?;
        }
        writeln!(out)?;
        if algorithms.is_empty() {
            algorithms.push(strongest);
        }
        manifest = Some(read);
    }
    if algorithms.is_empty() {
        algorithms.push(Algorithm::Xxh64);
    }
    let options = HashOptions { algorithms, per_tensor: !arguments.has("--no-layer") };
    let tally = print(&mut out, model, &options, manifest.as_ref(), &|_| true)?;
    let (Some(path), Some(_)) = (path, manifest) else { return Ok(0) };
    let (code, result) = match tally.outcome() {
        Outcome::Success => (0, "Success"),
        Outcome::Failure => (FAILURE, "Failure"),
        Outcome::MissingEntry => (MISSING_ENTRY, "Manifest Missing Entry"),
    };
    writeln!(out, "\nVerification results for {path} - {result}")?;
    Ok(code)
}

/// Tensors that the script skips.
const UNUSED: [&str; 3] = [".attention.masked_bias", ".attention.bias", ".rotary_emb.inv_freq"];

fn run_package(arguments: &Arguments) -> Result<u8, Failure> {
    let [model] = arguments.positions(["model"])?;
    let algorithms = vec![Algorithm::Sha1, Algorithm::Sha256, Algorithm::Uuid];
    let options = HashOptions { algorithms, per_tensor: !arguments.has("--no-layer") };
    let used = |name: &str| !UNUSED.iter().any(|end| name.ends_with(end));
    print(&mut std::io::stdout().lock(), model, &options, None, &used)?;
    Ok(0)
}

/// Prints the digests, and verifies them against the manifest.
fn print(
    out: &mut impl Write,
    source: &str,
    options: &HashOptions,
    manifest: Option<&Manifest>,
    used: &dyn Fn(&str) -> bool,
) -> Result<Tally, Failure> {
    let opened = open(source)?;
    let unused = opened.model().tensors().iter().find(|tensor| !used(&tensor.info.name));
    if let Some(tensor) = unused {
        return Err(Failure::Input(format!(
            "{source}: `{}` is skipped by gguf-hash; use `gguf hash`",
            tensor.info.name
        )));
    }
    let progress = Progress::new();
    let mut tally = Tally::default();
    let mut written = Ok(());
    hash(opened.model(), source, options, &progress, &mut |entry| {
        written = match manifest.map(|manifest| manifest.check(&entry)) {
            Some(found) => {
                tally.add(found);
                writeln!(out, "{entry}  -  {found}")
            }
            None => writeln!(out, "{entry}"),
        };
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    progress.finish();
    written?;
    Ok(tally)
}
