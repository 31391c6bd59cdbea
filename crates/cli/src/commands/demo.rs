//! `gguf demo`: converts, quantizes and checks a small bundled model.

use std::collections::BTreeMap;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gguf::{Gguf, Severity};
use gguf_checkpoint::Checkpoint;
use gguf_convert::hf;
use gguf_kit::generate::{GenerateOptions, TextModel, generate};
use gguf_kit::run::{ExecutorOptions, load};
use gguf_kit::{Error, scratch};
use gguf_quant::{Difference, difference};
use gguf_quantize::recipe::{Category, Preset, Target};
use gguf_runtime::{Context, ContextOptions, Precision, SamplingOptions};
use gguf_store::LocalFile;
use gguf_tokenizer::{DecodeOptions, EncodeOptions, Tokenizer};
use serde_json::{Value as Json, json};

use crate::demo_model;
use crate::document;
use crate::failure::Failure;
use crate::force::Force;
use crate::listing;

/// Convert and quantize a small bundled model.
///
/// Converts a small trained model to Q8_0 and Q4_K_M, checks the files, and shows size and weight error.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  gguf demo")]
pub struct Args {
    /// Checkpoint to use instead of the bundled one.
    checkpoint: Option<PathBuf>,
    /// Directory to keep the files in [default: files are removed].
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// Print the table as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    force: Force,
}

/// Types of the outputs. `None` keeps the types of the checkpoint and is the reference.
const OUTPUTS: [Option<Preset>; 3] = [None, Some(Preset::Q8_0), Some(Preset::Q4_K_M)];

/// Prompt for the smallest file.
const PROMPT: &str = "Behold, I";

pub fn run(args: &Args) -> Result<(), Failure> {
    let temporary = scratch::directory()?;
    show(args, temporary.path()).map_err(|failure| match failure {
        Failure::Failed(error) => scratch::outside(*error, temporary.path()).into(),
        failure => failure,
    })
}

fn show(args: &Args, temporary: &Path) -> Result<(), Failure> {
    let is_bundled = args.checkpoint.is_none();
    let source = match &args.checkpoint {
        Some(source) => source.clone(),
        None => unpack(temporary)?,
    };
    let dir = args.keep.as_deref().unwrap_or(temporary);
    std::fs::create_dir_all(dir).map_err(|fault| Error::environment("create", dir, fault))?;
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
    let name = if is_bundled { demo_model::NAME.into() } else { source.to_string_lossy() };
    if args.json {
        let files: Vec<_> = rows.iter().map(Row::json).collect();
        document::print(&mut out, "demo/1", json!({ "source": name, "files": files }))?;
    } else {
        writeln!(out, "{name}: checkpoint converted to three files\n")?;
        writeln!(out, "{}", Row::heading())?;
        for row in &rows {
            writeln!(out, "{}", row.text())?;
        }
        writeln!(out, "\nThe error is the RMS error of the weights, relative to the checkpoint.")?;
        let last = &files[files.len() - 1];
        if is_bundled {
            let text = complete(&last.path)?;
            writeln!(out, "\n{} completes `{PROMPT}`:\n\n  {text} ...", last.name)?;
        }
        print_next_steps(&mut out, args.keep.as_deref(), &last.path)?;
    }
    match rows.iter().find(|row| row.errors > 0) {
        None => Ok(()),
        Some(row) => Err(Failure::Input(format!("{} has findings of severity error", row.name))),
    }
}

/// Writes the bundled checkpoint into a directory.
fn unpack(dir: &Path) -> Result<PathBuf, Failure> {
    let dir = dir.join(demo_model::NAME);
    let written = std::fs::create_dir(&dir).and_then(|()| demo_model::unpack(&dir));
    written.map_err(|fault| Error::environment("write", &dir, fault))?;
    Ok(dir)
}

/// Returns the prompt with its greedy completion, up to the end of the line.
fn complete(path: &Path) -> Result<String, Failure> {
    let options = ExecutorOptions { precision: Precision::Exact, ..ExecutorOptions::default() };
    let running = load(&path.to_string_lossy(), &options)?;
    let tokenizer = Tokenizer::from_metadata(&running.metadata, Default::default())?;
    let ids = tokenizer.encode(PROMPT, EncodeOptions::default());
    let mut context = Context::new(running.executor.clone(), ContextOptions::default())?;
    let sampling = SamplingOptions { temperature: 0.0, ..SamplingOptions::default() };
    let generation = GenerateOptions {
        sampling,
        max_tokens: Some(12),
        stop: vec!["\n".into()],
        ignore_eos: false,
        completes: false,
    };
    let mut read = |_: &str| ControlFlow::Continue(());
    let model = TextModel {
        context: &mut context,
        tokenizer: &tokenizer,
        metadata: &running.metadata,
        speculation: None,
    };
    let answer = generate(model, &ids, &generation, &mut read, &())?;
    // Decoded together: a space at the start of the completion belongs to the text.
    let text = tokenizer.decode(&[ids, answer.ids].concat(), DecodeOptions::default());
    let text = String::from_utf8_lossy(&text);
    Ok(text.lines().next().unwrap_or_default().trim_end().to_owned())
}

/// Prints what to try next.
fn print_next_steps(out: &mut impl Write, kept: Option<&Path>, last: &Path) -> std::io::Result<()> {
    let last = last.display();
    match kept {
        Some(dir) => writeln!(
            out,
            "\nThe files are in {}. Next:\n  gguf inspect {last}\n  \
             gguf generate {last} -p \"And the king said\" -n 40",
            dir.display()
        ),
        None => writeln!(
            out,
            "\nNext:\n  gguf demo --keep demo        keep the files\n  \
             gguf convert --help          convert a local checkpoint or one from the Hub\n  \
             gguf inspect MODEL.gguf      show what a file contains"
        ),
    }
}

/// Table row of one file.
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
        reference: &Gguf,
    ) -> Result<Self, Failure> {
        let (findings, _) = gguf_check::check(opened.mapped());
        let bytes = model.tensors().iter().filter_map(|tensor| tensor.byte_len()).sum();
        let elements = model.tensors().iter().filter_map(|tensor| tensor.shape.elements()).sum();
        Ok(Self {
            name: file.name.clone(),
            file_bytes: opened.mapped().len() as u64,
            bits_per_weight: listing::bits_per_weight(bytes, elements),
            time: file.time,
            findings: findings.len(),
            errors: findings.iter().filter(|f| f.severity == Severity::Error).count(),
            differences: by_category(reference, model)?,
        })
    }

    fn heading() -> String {
        format!(
            "  {:<10} {:>9} {:>11} {:>8} {:>8}  {}",
            "type", "size", "bits/weight", "time", "error", "check"
        )
    }

    fn text(&self) -> String {
        let mut whole = Difference::default();
        self.differences.values().for_each(|difference| whole.add(difference));
        format!(
            "  {:<10} {:>9} {:>11.2} {:>5.0} ms {:>7.2}%  {}",
            self.name,
            listing::bytes(self.file_bytes),
            self.bits_per_weight,
            self.time.as_secs_f64() * 1000.0,
            whole.relative() * 100.0,
            if self.errors == 0 { "ok" } else { "errors" }
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

/// Written file.
struct Written {
    name: String,
    path: PathBuf,
    time: Duration,
}

fn convert(
    source: &Path,
    dir: &Path,
    mix: Option<Preset>,
    force: &Force,
) -> Result<Written, Failure> {
    let started = Instant::now();
    let checkpoint = Checkpoint::open(source)?;
    let options = hf::HfOptions { outtype: mix.map(Target::Preset), ..hf::HfOptions::default() };
    let conversion = hf::plan(source, &checkpoint, &options)?;
    let path = dir.join(&conversion.file_name);
    let overwrite = force.protecting([source]);
    conversion.job.write(&path, &overwrite, &())?;
    let name = mix.map_or("as stored".to_owned(), |mix| mix.name().to_owned());
    Ok(Written { name, path, time: started.elapsed() })
}

fn by_category(reference: &Gguf, other: &Gguf) -> Result<BTreeMap<Category, Difference>, Failure> {
    let others = other.header().index();
    let mut differences = BTreeMap::<_, Difference>::new();
    for a in reference.tensors() {
        let Some(b) = others.get(&*a.name) else { continue };
        let (Some(a_data), Some(b_data)) = (reference.data(a), other.data(b)) else { continue };
        let elements = a.shape.elements().unwrap_or(0);
        let difference = difference(elements, (a.tensor_type, a_data), (b.tensor_type, b_data))
            .map_err(|fault| Failure::Input(format!("tensor `{}`: {fault}", a.name)))?;
        differences.entry(Category::of(&a.name)).or_default().add(&difference);
    }
    Ok(differences)
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
