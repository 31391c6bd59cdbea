//! `gguf split`: a model in several files.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::PathBuf;

use gguf_kit::open;
use gguf_store::{SplitLimit, SplitOptions, SplitPlan};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::progress::Progress;

/// Split a model into shards, as `llama-gguf-split` does.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf split model.gguf model --split-max-size 2G")]
pub struct Args {
    /// The model.
    source: String,
    /// What the names of the shards begin with: PREFIX-00001-of-00003.gguf.
    prefix: PathBuf,
    /// The most tensors in a shard.
    #[arg(long, value_name = "N", default_value = "128")]
    split_max_tensors: NonZeroU64,
    /// The most bytes in a shard instead: N(K|M|G), decimal.
    #[arg(long, value_name = "SIZE", conflicts_with = "split_max_tensors", value_parser = listing::parse_size)]
    split_max_size: Option<u64>,
    /// Keep tensors out of the first shard, so that it can be read alone for the keys.
    #[arg(long)]
    no_tensor_first_split: bool,
    /// Show the plan and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// The plan as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.source)?;
    let model = opened.model();
    let limit = match args.split_max_size {
        Some(bytes) => SplitLimit::Bytes(bytes),
        None => SplitLimit::Tensors(args.split_max_tensors),
    };
    let options = SplitOptions { limit, no_tensor_first_split: args.no_tensor_first_split };
    let plan = SplitPlan::new(model, options)?;
    let paths = plan.paths(&args.prefix);
    let mut out = std::io::stdout().lock();
    if args.json {
        let shards: Vec<_> = plan
            .shards()
            .iter()
            .zip(&paths)
            .map(|(shard, path)| {
                json!({
                    "file": path.display().to_string(),
                    "tensors": shard.tensors.len(),
                    "file_bytes": shard.file_len,
                })
            })
            .collect();
        document::print(&mut out, "split/1", json!({ "shards": shards }))?;
    } else {
        writeln!(out, "n_split: {}", plan.shards().len())?;
        for (i, shard) in plan.shards().iter().enumerate() {
            let size = listing::bytes(shard.file_len);
            writeln!(
                out,
                "split {:05}: n_tensors = {}, total_size = {size}",
                i + 1,
                shard.tensors.len()
            )?;
        }
    }
    if args.dry_run {
        return Ok(());
    }
    let overwrite = args.force.sparing(opened.files());
    let progress = Progress::new();
    plan.write(&args.prefix, &overwrite, &progress)?;
    let time = progress.finish().as_secs_f64();
    let (shards, size) = (listing::plural(paths.len(), "shard"), listing::bytes(model.byte_len()));
    match &paths[..] {
        [first, .., last] => {
            let (first, last) = (first.display(), last.display());
            eprintln!("wrote {shards}, {first} to {last}: {size} in {time:.1} s");
        }
        only => {
            let names: String = only.iter().map(|path| path.display().to_string()).collect();
            eprintln!("wrote {shards}, {names}: {size} in {time:.1} s");
        }
    }
    Ok(())
}
