//! `gguf merge`: shards in one file.

use std::path::PathBuf;

use gguf_kit::open;
use gguf_store::{MergeOptions, delete_merged, merge};

use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::progress::Progress;

/// Merge the shards of a model into one file.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf merge model-00001-of-00003.gguf model.gguf")]
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
    #[command(flatten)]
    force: Force,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.source)?;
    if args.delete_shards && opened.transferred().is_some() {
        return Err(Failure::Usage("far shards cannot be deleted".into()));
    }
    let model = opened.model();
    let progress = Progress::new();
    let options = MergeOptions { keep_split_keys: args.keep_split_keys };
    let overwrite = args.force.sparing(opened.files());
    merge(model, &args.output, options, &overwrite, &progress)?;
    let time = progress.finish();
    let shards = model.parts().len();
    // Far ones are not ours to delete.
    if args.delete_shards && opened.transferred().is_none() {
        delete_merged(opened.into_model(), &args.output)?;
    }
    let size = args.output.metadata().map_or(0, |written| written.len());
    eprintln!(
        "wrote {} of {}: {} in {:.1} s",
        args.output.display(),
        listing::plural(shards, "file"),
        listing::bytes(size),
        time.as_secs_f64()
    );
    Ok(())
}
