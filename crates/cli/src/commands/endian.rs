//! `gguf convert-endian`: a model in the other byte order.

use std::path::PathBuf;

use gguf::edit::EditLock;
use gguf::{ByteOrder, Existing, Header, Output, Overwrite, ShardSet, endian, write_header};
use gguf_remote::Location;

use crate::failure::Failure;
use crate::force::Force;
use crate::listing;
use crate::opened::Opened;
use crate::progress::Progress;

/// Write a GGUF in another byte order: header and data of every tensor type.
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

/// Bytes copied at a time; cut to whole blocks.
const CHUNK: u64 = 4 << 20;

pub fn run(args: &Args) -> Result<(), Failure> {
    // Before the file is read, until the new one has its name.
    let _lock = match Location::parse(&args.source)? {
        Location::Path(path) if args.in_place && !args.dry_run => {
            Some(EditLock::take(&ShardSet::find(&path)?.paths()[0])?)
        }
        _ => None,
    };
    let opened = Opened::open(&args.source)?;
    let model = opened.model();
    let order = args.order.resolve();
    let swap = order != model.order();
    let mut draft = model.to_draft()?;
    draft.order = order;
    draft.version = args.gguf_version;
    if let Some(tensor) =
        draft.tensors.iter().find(|tensor| swap && !endian::can_swap(tensor.tensor_type))
    {
        return Err(Failure::Input(format!(
            "tensor `{}`: the layout of {} is not known, so it cannot be put in the other byte order",
            tensor.name, tensor.tensor_type
        )));
    }
    let header = Header::new(draft)?;
    if args.dry_run {
        let what = if swap { "swap the bytes of" } else { "copy" };
        println!(
            "would {what} {} tensors, {}",
            header.tensors().len(),
            listing::bytes(header.data_len())
        );
        return Ok(());
    }
    let mut files = opened.files();
    let (target, overwrite) = match (&args.output, files.next(), files.next()) {
        (Some(path), ..) => (path.clone(), args.force.sparing(opened.files())),
        (None, Some(path), None) => (path.to_owned(), Overwrite::new(Existing::Replace)),
        (None, ..) => {
            return Err(Failure::Usage(
                "only a single file can be replaced in place: give -o".into(),
            ));
        }
    };
    let start = write_header(&header)?;
    let output = Output::create(&target, &overwrite)?;
    let data_start = start.len() as u64;
    let end = header.alignment().align_up(header.data_len()).unwrap_or(header.data_len());
    output.set_len(data_start + end)?;
    output.write_at(&start, 0)?;
    let progress = Progress::new(header.data_len(), "converting").stoppable();
    let mut buffer = Vec::new();
    for (from, to) in model.tensors().iter().zip(header.tensors()) {
        // The header has been checked: a tensor without a size is none of ours.
        let len = to.byte_len().unwrap_or(0);
        let (_, block) = to.tensor_type.block().unwrap_or((1, 1));
        let chunk = (CHUNK / block).max(1) * block;
        for first in (0..len).step_by(chunk as usize) {
            buffer.resize(chunk.min(len - first) as usize, 0);
            from.read_stored_at(&mut buffer, first)?;
            if swap && !endian::swap_blocks(to.tensor_type, &mut buffer) {
                return Err(Failure::Input(format!("tensor `{}` is no whole blocks", to.name)));
            }
            output.write_at(&buffer, data_start + to.offset + first)?;
            if progress.advance(buffer.len() as u64).is_break() {
                return Err(Failure::Interrupted);
            }
        }
    }
    output.commit()?;
    progress.finish();
    eprintln!("wrote {}", target.display());
    Ok(())
}
