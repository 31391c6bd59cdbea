//! `gguf convert-endian`: a model in the other byte order.

use std::io::Write;
use std::path::PathBuf;

use gguf::ByteOrder;
use gguf_kit::endian::{self, EndianOptions, Plan};
use gguf_kit::open;
use gguf_remote::Location;
use serde_json::json;

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::{commands, listing};

/// Write a GGUF in another byte order.
///
/// Header and data of every tensor type are swapped.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf convert-endian model.gguf big -o model-be.gguf")]
pub struct Args {
    /// The model.
    source: String,
    /// The byte order that the output is to have.
    #[arg(value_enum)]
    order: Order,
    /// File to write.
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["in_place", "dry_run"])]
    output: Option<PathBuf>,
    /// Replace the file itself.
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// Version of the format to write.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=3))]
    gguf_version: u32,
    /// Only say what would be done.
    #[arg(long)]
    dry_run: bool,
    /// What was written, or with --dry-run would be done, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Order {
    Big,
    Little,
    /// That of this machine.
    Native,
}

impl Order {
    fn resolve(self) -> ByteOrder {
        match self {
            Self::Big => ByteOrder::Big,
            Self::Little => ByteOrder::Little,
            Self::Native if cfg!(target_endian = "big") => ByteOrder::Big,
            Self::Native => ByteOrder::Little,
        }
    }
}

pub fn run(args: &Args) -> Result<(), Failure> {
    let options = EndianOptions { order: args.order.resolve(), version: args.gguf_version };
    if args.in_place && !args.dry_run {
        let Location::Path(path) = Location::parse(&args.source)? else {
            return Err(Failure::Usage("a far file cannot be changed: give -o".into()));
        };
        let progress = Progress::new();
        endian::in_place(&path, options, &progress)?;
        let time = progress.finish();
        if args.json {
            let bytes = commands::tensor_bytes(open(&args.source)?.model());
            return commands::print_written("convert-endian/1", [(path.as_path(), bytes)], time);
        }
        commands::wrote(&path, Some(time));
        return Ok(());
    }
    let opened = open(&args.source)?;
    let plan = Plan::new(opened.model().clone(), options)?;
    let Some(target) = args.output.as_ref().filter(|_| !args.dry_run) else {
        let (count, bytes) = (plan.header().tensors().len(), plan.header().data_len());
        let mut out = std::io::stdout().lock();
        if args.json {
            let planned = json!({ "swaps": plan.swaps(), "tensor_count": count, "bytes": bytes });
            document::print(&mut out, "convert-endian/1", planned)?;
            return Ok(());
        }
        let what = if plan.swaps() { "swap the bytes of" } else { "copy" };
        let (count, size) = (listing::plural(count, "tensor"), listing::bytes(bytes));
        writeln!(out, "would {what} {count}, {size}")?;
        return Ok(());
    };
    let progress = Progress::new();
    plan.write(target, &args.force.protecting(opened.files()), &progress)?;
    let time = progress.finish();
    if args.json {
        let file = (target.as_path(), plan.header().data_len());
        return commands::print_written("convert-endian/1", [file], time);
    }
    commands::wrote(target, Some(time));
    Ok(())
}
