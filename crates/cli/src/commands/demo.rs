//! `gguf demo`: the main job on a small trained model, from checkpoint to checked files.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::{Gguf, Severity};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use gguf_quant::{Difference, difference};
use gguf_quantize::recipe::{Category, Mix, Target};
use gguf_store::LocalFile;
use serde_json::{Value as Json, json};

use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;

/// Convert a small model to two types, and show what it cost.
///
/// Q8_0 and Q4_K_M are made of a small trained model, and both are checked.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf demo")]
pub struct Args {
    /// A checkpoint to use instead of the one in testdata/.
    checkpoint: Option<PathBuf>,
    /// Directory to leave the files in; without it they are removed.
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The table as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

const MODEL: &str = "testdata/Tiny-KJV-Llama-4M";

/// The first is what the others are compared with: the weights as the checkpoint has them.
const OUTPUTS: [Option<Mix>; 3] = [None, Some(Mix::Q8_0), Some(Mix::Q4_K_M)];

pub fn run(args: &Args) -> Result<(), Failure> {
    let source = args.checkpoint.clone().map_or_else(find_model, Ok)?;
    let temporary = tempfile::tempdir()
        .map_err(|fault| Failure::Environment(format!("cannot create a directory: {fault}")))?;
    let dir = args.keep.as_deref().unwrap_or(temporary.path());
    let files = OUTPUTS
        .iter()
        .map(|mix| convert(&source, dir, *mix, &args.force))
        .collect::<Result<Vec<_>, _>>()?;
    let opened =
        files.iter().map(|file| LocalFile::open(&file.path)).collect::<Result<Vec<_>, _>>()?;
    let models =
        opened.iter().map(|file| Gguf::read(file.mapped())).collect::<Result<Vec<_>, _>>()?;
    let rows = files
        .iter()
        .zip(&opened)
        .zip(&models)
        .map(|((file, opened), model)| Row::of(file, opened, model, &models[0]))
        .collect::<Result<Vec<_>, _>>()?;

    let mut out = std::io::stdout().lock();
    if args.json {
        let files: Vec<_> = rows.iter().map(Row::json).collect();
        let document = json!({ "source": source.display().to_string(), "files": files });
        document::print(&mut out, "demo/1", document)?;
    } else {
        writeln!(out, "{}: one pass per file, no intermediate file\n", source.display())?;
        writeln!(out, "{}", rows[0].heading())?;
        for row in &rows {
            writeln!(out, "{}", row.text())?;
        }
        writeln!(
            out,
            "\nThe columns on the right: root mean square error relative to the checkpoint."
        )?;
        if let Some(dir) = &args.keep {
            writeln!(out, "The files are in {}.", dir.display())?;
        }
    }
    match rows.iter().find(|row| row.errors > 0) {
        None => Ok(()),
        Some(row) => Err(Failure::Input(format!("{} has findings of severity error", row.name))),
    }
}

/// What is shown of one file.
struct Row {
    name: String,
    file_bytes: u64,
    bits_per_weight: f64,
    time: Duration,
    findings: usize,
    errors: usize,
    differences: BTreeMap<Category, Difference>,
}

impl Row {
    fn of(
        file: &Written,
        opened: &LocalFile,
        model: &Gguf,
        original: &Gguf,
    ) -> Result<Self, Failure> {
        let (findings, _) = gguf::check(opened.mapped());
        let bytes = model.tensors().iter().filter_map(|tensor| tensor.byte_len()).sum();
        let elements = model.tensors().iter().filter_map(|tensor| tensor.shape.elements()).sum();
        Ok(Self {
            name: file.name.clone(),
            file_bytes: opened.mapped().len() as u64,
            bits_per_weight: listing::bits_per_weight(bytes, elements),
            time: file.time,
            findings: findings.len(),
            errors: findings.iter().filter(|f| f.severity == Severity::Error).count(),
            differences: by_category(original, model)?,
        })
    }

    fn heading(&self) -> String {
        let groups = self.differences.keys().map(|group| format!(" {:>10}", label(*group)));
        format!(
            "{:<10} {:>10} {:>8} {:>9} {:>9}{}",
            "type",
            "size",
            "bits",
            "time",
            "findings",
            groups.collect::<String>()
        )
    }

    fn text(&self) -> String {
        let errors = self.differences.values().map(|d| format!(" {:>9.3}%", d.relative() * 100.0));
        format!(
            "{:<10} {:>10} {:>8.2} {:>6.0} ms {:>9}{}",
            self.name,
            listing::bytes(self.file_bytes),
            self.bits_per_weight,
            self.time.as_secs_f64() * 1000.0,
            self.findings,
            errors.collect::<String>()
        )
    }

    fn json(&self) -> Json {
        let errors = self.differences.iter().map(|(group, d)| (label(*group), d.relative()));
        json!({
            "type": self.name,
            "file_bytes": self.file_bytes,
            "bits_per_weight": self.bits_per_weight,
            "seconds": self.time.as_secs_f64(),
            "findings": self.findings,
            "relative_error": errors.collect::<BTreeMap<_, _>>(),
        })
    }
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

fn convert(source: &Path, dir: &Path, mix: Option<Mix>, force: &Force) -> Result<Written, Failure> {
    let started = Instant::now();
    let checkpoint = Checkpoint::open(source)?;
    let options = hf::Options { outtype: mix.map(Target::Mix), ..hf::Options::default() };
    let conversion = hf::plan(source, &checkpoint, &options)?;
    let path = dir.join(&conversion.file_name);
    let overwrite = force.sparing([source]);
    conversion.job.write(&path, &overwrite, &())?;
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
