//! `gguf demo`: the main job on a small trained model, from checkpoint to checked files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::{Gguf, Map, Severity};
use gguf_convert::hf;
use gguf_convert::source::safetensors::Checkpoint;
use gguf_quant::recipe::{Category, Mix, Target};
use gguf_quant::{Difference, difference};

use crate::failure::Failure;
use crate::{commands, listing};

/// Convert a small trained model to Q8_0 and Q4_K_M, check both, and show what it cost.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf demo")]
pub struct Args {
    /// A checkpoint to use instead of the one in testdata/.
    checkpoint: Option<PathBuf>,
    /// Directory to leave the files in; without it they are removed.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

const MODEL: &str = "testdata/Tiny-KJV-Llama-4M";

/// The first is what the others are compared with: the weights as the checkpoint has them.
const OUTPUTS: [Option<Mix>; 3] = [None, Some(Mix::Q8_0), Some(Mix::Q4_K_M)];

pub fn run(args: &Args) -> Result<(), Failure> {
    let source = args.checkpoint.clone().map_or_else(find_model, Ok)?;
    let temporary = tempfile::tempdir()
        .map_err(|fault| Failure::Environment(format!("cannot create a directory: {fault}")))?;
    let dir = args.keep.as_deref().unwrap_or(temporary.path());
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}: one pass per file, no intermediate file", source.display())?;

    let files =
        OUTPUTS.iter().map(|mix| convert(&source, dir, *mix)).collect::<Result<Vec<_>, _>>()?;
    let maps = files.iter().map(|file| Map::open(&file.path)).collect::<Result<Vec<_>, _>>()?;
    let models = maps.iter().map(|map| Gguf::read(map)).collect::<Result<Vec<_>, _>>()?;
    let differences =
        models.iter().map(|model| by_category(&models[0], model)).collect::<Result<Vec<_>, _>>()?;

    let categories: Vec<Category> = differences[0].keys().copied().collect();
    write!(out, "\n{:<10} {:>10} {:>8} {:>9} {:>9}", "type", "size", "bits", "time", "findings")?;
    for category in &categories {
        write!(out, " {:>10}", label(*category))?;
    }
    writeln!(out)?;
    let mut sound = true;
    for (((file, map), model), of_file) in files.iter().zip(&maps).zip(&models).zip(&differences) {
        let (findings, _) = gguf::check(map);
        sound &= findings.iter().all(|finding| finding.severity < Severity::Error);
        let bytes = model.tensors().iter().filter_map(|tensor| tensor.byte_len()).sum();
        let elements = model.tensors().iter().filter_map(|tensor| tensor.shape.elements()).sum();
        write!(
            out,
            "{:<10} {:>10} {:>8.2} {:>6.0} ms {:>9}",
            file.name,
            listing::bytes(map.len() as u64),
            listing::bits_per_weight(bytes, elements),
            file.time.as_secs_f64() * 1000.0,
            findings.len(),
        )?;
        for category in &categories {
            let relative = of_file.get(category).map_or(0.0, Difference::relative);
            write!(out, " {:>9.3}%", relative * 100.0)?;
        }
        writeln!(out)?;
    }
    writeln!(
        out,
        "\nThe columns on the right: root mean square error relative to the checkpoint."
    )?;
    if let Some(dir) = &args.keep {
        writeln!(out, "The files are in {}.", dir.display())?;
    }
    if sound { Ok(()) } else { Err(Failure::Input("a file has findings of severity error".into())) }
}

/// The model in the working directory, or where this program was built.
fn find_model() -> Result<PathBuf, Failure> {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(MODEL);
    [PathBuf::from(MODEL), built].into_iter().find(|path| path.is_dir()).ok_or_else(|| {
        Failure::Usage(format!(
            "{MODEL} is not here: run this in the repository, or name a checkpoint"
        ))
    })
}

/// A file that was written.
struct Written {
    name: String,
    path: PathBuf,
    time: Duration,
}

fn convert(source: &Path, dir: &Path, mix: Option<Mix>) -> Result<Written, Failure> {
    let started = Instant::now();
    let checkpoint = Checkpoint::open(source)?;
    let options = hf::Options { outtype: mix.map(Target::Mix), ..hf::Options::default() };
    let conversion = hf::plan(source, &checkpoint, &options)?;
    let path = dir.join(&conversion.file_name);
    conversion.job.write(&path, commands::all_cores(), &|_| ())?;
    let name = mix.map_or("as stored".to_owned(), |mix| mix.name().to_owned());
    Ok(Written { name, path, time: started.elapsed() })
}

fn by_category(original: &Gguf, other: &Gguf) -> Result<BTreeMap<Category, Difference>, Failure> {
    let others = other.header().index();
    let mut figures = BTreeMap::<_, Difference>::new();
    for a in original.tensors() {
        let Some(b) = others.get(&*a.name) else { continue };
        let (Some(a_data), Some(b_data)) = (original.data(a), other.data(b)) else { continue };
        let elements = a.shape.elements().unwrap_or(0);
        let figure = difference(elements, (a.tensor_type, a_data), (b.tensor_type, b_data))
            .map_err(|fault| Failure::Input(format!("tensor `{}`: {fault}", a.name)))?;
        figures.entry(Category::of(&a.name)).or_default().add(&figure);
    }
    Ok(figures)
}

fn label(category: Category) -> &'static str {
    match category {
        Category::Output => "output",
        Category::TokenEmbedding => "embedding",
        Category::AttentionQkv | Category::AttentionKvB => "attn_qkv",
        Category::AttentionQ => "attn_q",
        Category::AttentionK => "attn_k",
        Category::AttentionV => "attn_v",
        Category::AttentionOutput => "attn_out",
        Category::FfnUp => "ffn_up",
        Category::FfnGate => "ffn_gate",
        Category::FfnDown => "ffn_down",
        Category::Other => "norms",
    }
}
