//! `gguf convert-endian`: converts the byte order.

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

/// Convert a GGUF to another byte order.
///
/// Swaps the header and the data of every tensor type.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf convert-endian model.gguf big -o model-be.gguf")]
pub struct Args {
    /// Model.
    source: String,
    /// Byte order of the output.
    #[arg(value_enum)]
    order: Order,
    /// Output file.
    #[arg(short, long, value_name = "FILE", required_unless_present_any = ["in_place", "dry_run"])]
    output: Option<PathBuf>,
    /// Replace the file in place.
    #[arg(long, conflicts_with = "output")]
    in_place: bool,
    /// GGUF version to write.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(2..=3))]
    gguf_version: u32,
    /// Show the plan without writing anything.
    #[arg(long)]
    dry_run: bool,
    /// Print the written file, or the plan, as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Order {
    Big,
    Little,
    /// Byte order of this machine.
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
            return Err(Failure::Usage("a remote file cannot be edited in place: use -o".into()));
        };
        let progress = Progress::new();
        endian::in_place(&path, options, &progress)?;
        let time = progress.finish();
        if args.json {
            let len = open(&args.source)?.model().byte_len();
            return commands::print_written("convert-endian/2", [(path.as_path(), len)], time);
        }
        commands::report_file(&path, Some(time));
        return Ok(());
    }
    let opened = open(&args.source)?;
    let plan = Plan::new(opened.model().clone(), options)?;
    let header = plan.header();
    let len = header.file_len(gguf::write_header(header)?.len())?;
    let Some(target) = args.output.as_ref().filter(|_| !args.dry_run) else {
        let count = header.tensors().len();
        let mut out = std::io::stdout().lock();
        if args.json {
            let planned =
                json!({ "swaps": plan.swaps(), "tensor_count": count, "file_bytes": len });
            document::print(&mut out, "convert-endian/2", planned)?;
            return Ok(());
        }
        let what = if plan.swaps() { "swap the bytes of" } else { "copy" };
        let (count, size) = (listing::plural(count, "tensor"), listing::bytes(len));
        writeln!(out, "would {what} {count}, {size}")?;
        return Ok(());
    };
    let progress = Progress::new();
    plan.write(target, &args.force.protecting(opened.files()), &progress)?;
    let time = progress.finish();
    if args.json {
        return commands::print_written("convert-endian/2", [(target.as_path(), len)], time);
    }
    commands::report_file(target, Some(time));
    Ok(())
}
