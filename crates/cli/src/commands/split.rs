//! `gguf split`: splits a model into shards.

use std::io::Write;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};

use gguf_kit::open;
use gguf_pipeline::Job;
use gguf_store::{PlannedShard, SplitLimit, SplitOptions, SplitPlan};
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::progress::Progress;

/// Split a model into shards.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf split model.gguf model --split-max-size 2G")]
pub struct Args {
    /// Model.
    source: String,
    /// Prefix of the shards: PREFIX-00001-of-00003.gguf.
    prefix: PathBuf,
    /// Maximum number of tensors per shard.
    #[arg(long, value_name = "N", default_value = "128")]
    split_max_tensors: NonZeroU64,
    /// Maximum size of a shard instead: N(K|M|G), decimal.
    #[arg(long, value_name = "SIZE", conflicts_with = "split_max_tensors", value_parser = listing::parse_size)]
    split_max_size: Option<u64>,
    /// Put no tensors into the first shard, only metadata.
    #[arg(long)]
    no_tensor_first_split: bool,
    /// Show the plan without writing anything.
    #[arg(long)]
    dry_run: bool,
    /// Print the plan, or the written files, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    // Several files cannot be written to a stream.
    if args.prefix.as_os_str() == "-" {
        args.force.protecting::<&Path>([]).check(&args.prefix)?;
    }
    let opened = open(&args.source)?;
    let model = opened.model();
    let limit = match args.split_max_size {
        Some(bytes) => SplitLimit::Bytes(bytes),
        None => SplitLimit::Tensors(args.split_max_tensors),
    };
    let options = SplitOptions { limit, no_tensor_first_split: args.no_tensor_first_split };
    let fingerprint = Job::copy(model).fingerprint()?;
    let plan = SplitPlan::identified(model, options, &fingerprint)?;
    let paths = plan.paths(&args.prefix);
    let time = match args.dry_run {
        true => None,
        false => {
            let overwrite = args.force.protecting(opened.files());
            let progress = Progress::new();
            plan.write(&args.prefix, &overwrite, &progress)?;
            Some(progress.finish().as_secs_f64())
        }
    };
    let shards: Vec<(&Path, &PlannedShard)> =
        paths.iter().map(PathBuf::as_path).zip(plan.shards()).collect();
    if args.json {
        let shard = |(path, shard): &(&Path, &PlannedShard)| {
            json!({
                "file": path.display().to_string(),
                "tensors": shard.tensors.len(),
                "file_bytes": shard.file_len,
            })
        };
        let shards: Vec<_> = shards.iter().map(shard).collect();
        let document = json!({ "shards": shards, "seconds": time });
        return Ok(document::print(&mut std::io::stdout().lock(), "split/1", document)?);
    }
    let files = listing::plural(shards.len(), "file");
    let all = listing::bytes(shards.iter().map(|(_, shard)| shard.file_len).sum());
    let Some(time) = time else {
        let tensors = listing::plural(model.tensors().len(), "tensor");
        let mut out = std::io::stdout().lock();
        writeln!(out, "would write {files}: {tensors}, {all}\n")?;
        return Ok(listing::parts(
            &mut out,
            shards.iter().map(|(path, shard)| (*path, shard.tensors.len(), shard.file_len)),
        )?);
    };
    for (path, shard) in &shards {
        eprintln!("wrote {}: {}", path.display(), listing::bytes(shard.file_len));
    }
    eprintln!("{files}, {all} in {time:.1} s");
    Ok(())
}
