//! `gguf merge`: merges shards into one file.

use std::io::Write;
use std::path::PathBuf;

use gguf::shard_keys::PART_FINGERPRINT;
use gguf_kit::open;
use gguf_pipeline::Job;
use gguf_store::{MergeOptions, Model, delete_merged, merge};
use serde_json::json;

use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{commands, document, listing};

/// Merge the shards of a model into one file.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  gguf merge model-00001-of-00003.gguf model.gguf\n  \
                        gguf merge parts/ model.gguf --dry-run")]
pub struct Args {
    /// Any shard, the directory of the shards, a pattern, or a remote location.
    source: String,
    /// Output file, distinct from all shards.
    output: PathBuf,
    /// Delete the shards after verifying every byte of the output.
    #[arg(long)]
    delete_shards: bool,
    /// Keep the `split.*` keys of the first shard, as `llama-gguf-split` does.
    #[arg(long, help_heading = "Advanced")]
    keep_split_keys: bool,
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
    let opened = open(&args.source)?;
    if args.delete_shards && opened.transferred().is_some() {
        return Err(Failure::Usage("remote shards cannot be deleted".into()));
    }
    let model = opened.model();
    if args.dry_run {
        return show(args, model);
    }
    let progress = Progress::new();
    let options = MergeOptions { keep_split_keys: args.keep_split_keys };
    let overwrite = args.force.protecting(opened.files());
    let size = merge(model, &args.output, options, &overwrite, &progress)?;
    let time = progress.finish();
    let shards = model.parts().len();
    // Remote shards are never deleted.
    if args.delete_shards && opened.transferred().is_none() {
        delete_merged(opened.into_model(), &args.output)?;
    }
    if args.json {
        return commands::print_written("merge/2", [(args.output.as_path(), size)], time);
    }
    eprintln!(
        "wrote {} from {}: {} in {:.1} s",
        args.output.display(),
        listing::plural(shards, "file"),
        listing::bytes(size),
        time.as_secs_f64()
    );
    Ok(())
}

/// Returns the size of the merged file.
fn merged_len(args: &Args, model: &Model) -> Result<u64, Failure> {
    let mut job = Job::copy(model);
    if args.keep_split_keys
        && let Some(first) = model.parts().first()
    {
        job.metadata = first.header.metadata().clone();
        job.metadata.remove(PART_FINGERPRINT);
    }
    Ok(job.file_len()?)
}

/// Prints the planned output and its shards.
fn show(args: &Args, model: &Model) -> Result<(), Failure> {
    let (output, len) = (args.output.display(), merged_len(args, model)?);
    let (tensors, parts) = (model.tensors().len(), model.parts());
    let mut out = std::io::stdout().lock();
    if args.json {
        let planned = json!({
            "file": output.to_string(), "shards": parts.len(), "tensor_count": tensors, "file_bytes": len,
        });
        return Ok(document::print(&mut out, "merge/2", planned)?);
    }
    writeln!(
        out,
        "would write {output} from {}: {}, {}\n",
        listing::plural(parts.len(), "file"),
        listing::plural(tensors, "tensor"),
        listing::bytes(len)
    )?;
    let files =
        parts.iter().map(|part| (&*part.path, part.header.tensors().len(), part.source.byte_len()));
    Ok(listing::parts(&mut out, files)?)
}
