//! `llama-gguf-split`.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::Path;

use gguf_kit::open;
use gguf_store::{Existing, SplitLimit, SplitOptions, SplitPlan};

use super::arguments::{Arguments, parse_args};
use super::flag::{Flag, help, translated, version};
use super::{ArgumentStyle, Program};
use crate::commands::merge;
use crate::failure::Failure;
use crate::listing::parse_size;
use crate::progress::Progress;

pub const PROGRAM: Program = Program {
    name: "llama-gguf-split",
    command: "gguf split` and `gguf merge",
    positionals: "GGUF_IN GGUF_OUT",
    style: ArgumentStyle::LlamaCpp,
    example: "--split-max-size 2G model.gguf parts/model",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    version("--version"),
    translated("--split", 0, "`gguf split`, the default"),
    translated("--merge", 0, "`gguf merge --keep-split-keys`"),
    translated("--split-max-tensors", 1, "`--split-max-tensors`"),
    translated("--split-max-size", 1, "`--split-max-size`"),
    translated("--no-tensor-first-split", 0, "`--no-tensor-first-split`"),
    translated(
        "--dry-run",
        0,
        "`--dry-run`; with `--merge`, prints the number of shards and tensors",
    ),
    translated("--delete-splits", 0, "`--delete-shards`, after verification of the output"),
];

fn run(arguments: &Arguments) -> Result<u8, Failure> {
    let [input, output] = arguments.positions(["GGUF_IN", "GGUF_OUT"])?;
    let conflict = |what: &str| Err(Failure::Usage(format!("{what} exclude each other")));
    if arguments.has("--merge") && arguments.has("--split") {
        return conflict("--split and --merge");
    }
    if arguments.has("--split-max-tensors") && arguments.has("--split-max-size") {
        return conflict("--split-max-tensors and --split-max-size");
    }
    if arguments.has("--merge") {
        merge(arguments, input, output)?;
    } else {
        split(arguments, input, output)?;
    }
    Ok(0)
}

fn split(arguments: &Arguments, input: &str, prefix: &str) -> Result<(), Failure> {
    let opened = open(input)?;
    let limit = match arguments.value("--split-max-size") {
        Some(size) => SplitLimit::Bytes(parse_size(size).map_err(Failure::Usage)?),
        None => {
            let limit = arguments.number::<NonZeroU64>("--split-max-tensors")?;
            limit.map_or(SplitOptions::default().limit, SplitLimit::Tensors)
        }
    };
    let no_tensor_first_split = arguments.has("--no-tensor-first-split");
    let plan = SplitPlan::new(opened.model(), SplitOptions { limit, no_tensor_first_split })?;
    let (paths, shards) = (plan.paths(Path::new(prefix)), plan.shards());
    let mut out = std::io::stdout().lock();
    writeln!(out, "n_split: {}", shards.len())?;
    for (number, shard) in (1..).zip(shards) {
        let (count, size) = (shard.tensors.len(), shard.file_len / 1_000_000);
        writeln!(out, "split {number:05}: n_tensors = {count}, total_size = {size}M")?;
    }
    if !arguments.has("--dry-run") {
        let overwrite = gguf_kit::overwrite(Existing::Replace).protecting(opened.files());
        let progress = Progress::new();
        plan.write(Path::new(prefix), &overwrite, &progress)?;
        progress.finish();
        for path in &paths {
            writeln!(out, "Writing file {} ... done", path.display())?;
        }
    }
    let (count, tensors) = (paths.len(), opened.model().tensors().len());
    eprintln!("gguf_split: {count} gguf split written with a total of {tensors} tensors.");
    Ok(())
}

/// Refuses to overwrite the output, as the original does.
fn merge(arguments: &Arguments, input: &str, output: &str) -> Result<(), Failure> {
    if Path::new(output).exists() {
        return Err(Failure::Usage(format!("output file {output} already exists")));
    }
    let opened = open(input)?;
    let (shards, tensors) = (opened.model().parts().len(), opened.model().tensors().len());
    if !arguments.has("--dry-run") {
        // The command opens the shards again.
        drop(opened);
        let delete = arguments.has("--delete-splits").then_some("--delete-shards");
        let flags = ["--keep-split-keys"].into_iter().chain(delete);
        merge::run(&parse_args(arguments.translate(flags, [input, output]))?)?;
    }
    eprintln!("gguf_merge: {output} merged from {shards} split with {tensors} tensors.");
    Ok(())
}
