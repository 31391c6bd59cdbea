//! `gguf merge`: shards in one file.

use std::io::Write;
use std::path::PathBuf;

use gguf_kit::open;
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
    /// Any shard, the directory they are in, a pattern, or a far location.
    source: String,
    /// File to write; never one of the shards.
    output: PathBuf,
    /// Delete the shards once every byte of them is found in the output on disk.
    #[arg(long)]
    delete_shards: bool,
    /// Keep the keys of the first shard that say it is one, as `llama-gguf-split` does.
    #[arg(long)]
    keep_split_keys: bool,
    /// Show the plan and write nothing.
    #[arg(long)]
    dry_run: bool,
    /// The plan, or what was written, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.source)?;
    if args.delete_shards && opened.transferred().is_some() {
        return Err(Failure::Usage("far shards cannot be deleted".into()));
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
    let (shards, bytes) = (model.parts().len(), commands::tensor_bytes(model));
    // Far ones are not ours to delete.
    if args.delete_shards && opened.transferred().is_none() {
        delete_merged(opened.into_model(), &args.output)?;
    }
    if args.json {
        return commands::print_written("merge/1", [(args.output.as_path(), bytes)], time);
    }
    eprintln!(
        "wrote {} of {}: {} in {:.1} s",
        args.output.display(),
        listing::plural(shards, "file"),
        listing::bytes(size),
        time.as_secs_f64()
    );
    Ok(())
}

/// What would be written, and the shards it would be made of.
fn show(args: &Args, model: &Model) -> Result<(), Failure> {
    let (output, bytes) = (args.output.display(), commands::tensor_bytes(model));
    let (tensors, parts) = (model.tensors().len(), model.parts());
    let mut out = std::io::stdout().lock();
    if args.json {
        let planned = json!({
            "file": output.to_string(), "shards": parts.len(), "tensor_count": tensors, "bytes": bytes,
        });
        return Ok(document::print(&mut out, "merge/1", planned)?);
    }
    writeln!(
        out,
        "would write {output} of {}: {}, {}\n",
        listing::plural(parts.len(), "file"),
        listing::plural(tensors, "tensor"),
        listing::bytes(bytes)
    )?;
    let files =
        parts.iter().map(|part| (&*part.path, part.header.tensors().len(), part.source.byte_len()));
    Ok(listing::parts(&mut out, files)?)
}
