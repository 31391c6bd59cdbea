//! What `gguf convert` does with a model from before GGUF.

use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use gguf_legacy::{Change, Legacy, Options, Overrides, parts};
use gguf_store::edit::reserve;
use serde_json::json;

use super::convert::Args;
use crate::failure::Failure;
use crate::{commands, listing};

/// What files from before GGUF do not say.
#[derive(clap::Args)]
#[command(next_help_heading = "Files from before GGUF")]
pub struct Flags {
    /// Folder with config.json and tokenizer of the model, for what the file does not hold.
    #[arg(long, value_name = "DIR")]
    metadata_dir: Option<PathBuf>,
    /// Longest context in tokens, where the file does not say it [usual: 2048].
    #[arg(long, value_name = "N")]
    context_length: Option<NonZeroU32>,
    /// Epsilon of the norms [usual: 5e-6 for llama, 1e-5 for others].
    #[arg(long, value_name = "X", value_parser = listing::parse_above_0::<f32>)]
    eps: Option<f32>,
    /// Base frequency of rotary embedding [usual: 10000].
    #[arg(long, value_name = "X", value_parser = listing::parse_above_0::<f32>)]
    rope_base: Option<f32>,
    /// Query heads per key and value head of llama; the tensors tell, this only checks.
    #[arg(long, value_name = "N")]
    gqa: Option<NonZeroU32>,
    /// Attention heads, where the header has a wrong number.
    #[arg(long, value_name = "N")]
    head_count: Option<NonZeroU32>,
}

/// Converts the old model that `args` names.
pub fn run(args: &Args) -> Result<(), Failure> {
    let flags = &args.legacy;
    let options = Options {
        outtype: args.outtype.target(),
        architecture: args.architecture.clone(),
        given: Overrides {
            context_length: flags.context_length.map(NonZeroU32::get),
            epsilon: flags.eps,
            rope_base: flags.rope_base,
            head_count: flags.head_count.map(NonZeroU32::get),
            gqa: flags.gqa.map(NonZeroU32::get),
        },
        metadata_dir: flags.metadata_dir.clone(),
        pre: args.pre.clone(),
        model_name: args.model_name.clone(),
        quantization: args.types.options()?,
    };
    let path = Path::new(&args.source);
    let legacy = Legacy::open(path, &options)?;
    let mut conversion = legacy.plan(&options)?;
    reserve(&mut conversion.job.metadata, args.reserve);
    commands::print_notes(&conversion.notes);
    let output = match &args.output {
        Some(path) if path.is_dir() => path.join(&conversion.file_name),
        Some(path) => path.clone(),
        None => path.with_file_name(&conversion.file_name),
    };
    if args.dry_run {
        // As strict as the real thing.
        conversion.job.header()?;
        let mut out = std::io::stdout().lock();
        if args.json {
            let mut plan = listing::plan_json(&conversion.job);
            plan["output"] = output.display().to_string().into();
            plan["changes"] = conversion.changes.iter().map(change_json).collect();
            writeln!(out, "{plan:#}")?;
        } else {
            write!(out, "{}", listing::plan_text(&conversion.job))?;
            for Change { name, from, to, how } in &conversion.changes {
                writeln!(out, "{name:<44} {from:<28} -> {to:<7} {how}")?;
            }
            writeln!(out, "would write {}", output.display())?;
        }
        return Ok(());
    }
    let dir = flags.metadata_dir.iter();
    let inputs = args.inputs().map(Path::to_owned).chain(dir.cloned()).chain(parts(path));
    commands::write(&conversion.job, &output, &args.force.sparing(inputs))
}

fn change_json(Change { name, from, to, how }: &Change) -> serde_json::Value {
    json!({ "tensor": name, "from": from, "to": to.to_string(), "how": how.to_string() })
}
