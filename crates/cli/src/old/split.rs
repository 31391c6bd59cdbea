//! `llama-gguf-split`.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::Path;

use gguf_kit::open;
use gguf_store::{Existing, SplitLimit, SplitOptions, SplitPlan};

use super::flag::{Flag, help, read, version};
use super::given::{Given, args_of};
use super::{Family, Program};
use crate::commands::merge;
use crate::failure::Failure;
use crate::listing::parse_size;
use crate::progress::Progress;

pub const PROGRAM: Program = Program {
    name: "llama-gguf-split",
    ours: "gguf split` and `gguf merge",
    words: "GGUF_IN GGUF_OUT",
    family: Family::LlamaCpp,
    example: "--split-max-size 2G model.gguf parts/model",
    flags: &[FLAGS],
    run,
};

const FLAGS: &[Flag] = &[
    help("-h --help"),
    version("--version"),
    read("--split", 0, "`gguf split`, which is usual"),
    read("--merge", 0, "`gguf merge --keep-split-keys`"),
    read("--split-max-tensors", 1, "`--split-max-tensors`"),
    read("--split-max-size", 1, "`--split-max-size`"),
    read("--no-tensor-first-split", 0, "`--no-tensor-first-split`"),
    read("--dry-run", 0, "`--dry-run`; of `--merge`, says what would be merged"),
    read("--delete-splits", 0, "`--delete-shards`, after all are found in the output"),
];

fn run(given: &Given) -> Result<u8, Failure> {
    let [input, output] = given.positions(["GGUF_IN", "GGUF_OUT"])?;
    let contradicts = |what: &str| Err(Failure::Usage(format!("one of {what}, and not both")));
    if given.has("--merge") && given.has("--split") {
        return contradicts("--split and --merge");
    }
    if given.has("--split-max-tensors") && given.has("--split-max-size") {
        return contradicts("--split-max-tensors and --split-max-size");
    }
    if given.has("--merge") {
        merge(given, input, output)?;
    } else {
        split(given, input, output)?;
    }
    Ok(0)
}

fn split(given: &Given, input: &str, prefix: &str) -> Result<(), Failure> {
    let opened = open(input)?;
    let limit = match given.value("--split-max-size") {
        Some(size) => SplitLimit::Bytes(parse_size(size).map_err(Failure::Usage)?),
        None => {
            let most = given.number::<NonZeroU64>("--split-max-tensors")?;
            most.map_or(SplitOptions::default().limit, SplitLimit::Tensors)
        }
    };
    let no_tensor_first_split = given.has("--no-tensor-first-split");
    let plan = SplitPlan::new(opened.model(), SplitOptions { limit, no_tensor_first_split })?;
    let (paths, shards) = (plan.paths(Path::new(prefix)), plan.shards());
    let mut out = std::io::stdout().lock();
    writeln!(out, "n_split: {}", shards.len())?;
    for (number, shard) in (1..).zip(shards) {
        let (count, size) = (shard.tensors.len(), shard.file_len / 1_000_000);
        writeln!(out, "split {number:05}: n_tensors = {count}, total_size = {size}M")?;
    }
    if !given.has("--dry-run") {
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

/// The original replaces no output here, so ours does not.
fn merge(given: &Given, input: &str, output: &str) -> Result<(), Failure> {
    if Path::new(output).exists() {
        return Err(Failure::Usage(format!("output file {output} already exists")));
    }
    let opened = open(input)?;
    let (shards, tensors) = (opened.model().parts().len(), opened.model().tensors().len());
    if !given.has("--dry-run") {
        // The command opens them anew.
        drop(opened);
        let delete = given.has("--delete-splits").then_some("--delete-shards");
        let flags = ["--keep-split-keys"].into_iter().chain(delete);
        merge::run(&args_of(given.ours(flags, [input, output]))?)?;
    }
    eprintln!("gguf_merge: {output} merged from {shards} split with {tensors} tensors.");
    Ok(())
}
