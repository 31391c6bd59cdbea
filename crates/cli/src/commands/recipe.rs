//! `gguf recipe`: prints the tensor types of a model.

use std::io::Write;

use gguf_kit::open;
use gguf_quantize::recipe::write_type_file;
use gguf_store::Model;
use serde_json::{Value as Json, json};

use crate::document;
use crate::failure::Failure;

/// Print the type of each tensor of a model.
///
/// The output is a file for `gguf quantize --tensor-type-file`, to reuse another model's recipe.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    gguf recipe hf:org/model-GGUF:model-Q4_K_XL.gguf > recipe.txt\n  \
    gguf quantize --tensor-type-file recipe.txt mine-f16.gguf mine.gguf Q4_K_M")]
pub struct Args {
    /// Model: a file, directory, shard or remote location.
    source: String,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let opened = open(&args.source)?;
    let model = opened.model();
    let mut out = std::io::stdout().lock();
    if args.json {
        document::print(&mut out, "recipe/1", as_json(model))?;
        return Ok(());
    }
    write!(out, "{}", write_type_file(types(model)))?;
    Ok(())
}

/// Skips vectors, which recipes do not cover.
fn types(model: &Model) -> impl Iterator<Item = (&str, gguf::TensorType)> {
    let matrices = model.tensors().iter().filter(|tensor| tensor.info.shape.len() > 1);
    matrices.map(|tensor| (&*tensor.info.name, tensor.info.tensor_type))
}

fn as_json(model: &Model) -> Json {
    let tensors = types(model).map(|(name, ty)| json!({ "name": name, "type": ty.name() }));
    json!({ "tensors": tensors.collect::<Vec<_>>() })
}
