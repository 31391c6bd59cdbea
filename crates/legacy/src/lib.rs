//! Models from before GGUF: GGML, GGMF, GGJT and GGCC files.
//!
//! `read` takes a file apart, `parts` puts models in several files together, `blocks` turns the
//! block formats of the time into elements or today's blocks; `names`, `hyper` and `tokens` say
//! what it all means. From there on the [pipeline](gguf_pipeline) works as for any source.

mod blocks;
mod choice;
mod container;
mod cursor;
mod directory;
mod given;
mod header;
mod hyper;
mod merges;
mod names;
mod parts;
mod read;
mod starcoder;
mod tokens;
mod vocabulary;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gguf::{ByteOrder, Metadata, QUANTIZATION_VERSION, Shape, TensorType};
use gguf_quantize::recipe::Target;
use gguf_store::Source;

use blocks::{Converted, StorageType};
pub use choice::{Change, How};
pub use container::is_legacy;
use gguf::Error;
use gguf_convert::vocab;
use gguf_pipeline::Step;
use gguf_pipeline::{Content, Stored, Tensor};
use gguf_pipeline::{Item, Job};
pub use given::Overrides;
use given::Resolved;
use header::{Field, Program};
use names::Meaning;
use parts::JoinedTensor;
pub use parts::parts;
use read::OldFile;

/// What a conversion can be asked for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The mix or type of the output; `None` for the type of the source where a type of today
    /// holds the very same weights, and for the smallest float type that does otherwise.
    pub outtype: Option<Target>,
    /// The program that the file is of, instead of recognising it.
    pub architecture: Option<String>,
    /// Hyper-parameters that the file does not hold.
    pub given: Overrides,
    /// A folder with configuration and tokenizer of the model.
    pub metadata_dir: Option<PathBuf>,
    /// The name of the pre-tokenizer, instead of the usual one.
    pub pre: Option<String>,
    /// The name of the model, instead of the one of the file.
    pub model_name: Option<String>,
    /// What decides the types of quantized tensors, beside the mix, and keys to set.
    pub quantization: gguf_quantize::Options,
}

/// An old model, its files open.
pub struct Legacy {
    old: OldFile,
    architecture: &'static str,
    known: Resolved,
    tensors: Vec<OldTensor>,
    metadata: Metadata,
    notes: Vec<String>,
}

/// A tensor in all the ways that it can be read.
struct OldTensor {
    /// As the old file has it.
    whole: JoinedTensor,
    /// Its name in a GGUF.
    name: String,
    /// Elements of single precision, where it is in old blocks.
    floats: Option<Arc<Converted>>,
    /// Blocks of today with the same levels, where there is such a type.
    today: Option<(TensorType, Arc<Converted>)>,
}

/// A conversion that is ready to run.
pub struct Conversion {
    /// What to write.
    pub job: Job,
    /// What the output is to be called where nothing else is said.
    pub file_name: String,
    /// What the user should know.
    pub notes: Vec<String>,
    /// What becomes of each tensor of the job.
    pub changes: Vec<Change>,
}

impl Legacy {
    /// Opens the model at `path`, the first of its files if it has several, and finds out what it
    /// is.
    ///
    /// # Errors
    /// If the file is damaged, of no known program, or of several; if a part is missing; if the
    /// configuration or the hyper-parameters given are of another model.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        let old = read::read(path, options.architecture.as_deref())?;
        let program = old.layout.program;
        let dir = options.metadata_dir.as_deref();
        let known = options.given.complete(program, &old.header, dir)?;
        let (mut joined, parts) = parts::tensors(&old)?;
        let architecture = match (program, options.architecture.as_deref()) {
            (Program::Gpt2, Some("starcoder")) => "starcoder",
            (Program::Gpt2, None) if starcoder::repeats(&joined, known.heads)? => "starcoder",
            (Program::Llama, _) => "llama",
            (Program::Gpt2, _) => "gpt2",
            (Program::GptJ, _) => "gptj",
            (Program::GptNeox, _) => "gptneox",
            (Program::Mpt | Program::Replit, _) => "mpt",
            (Program::Bloom, _) => "bloom",
            (Program::Falcon, _) => "falcon",
            (Program::Whisper, _) => "whisper",
        };
        if architecture == "starcoder" {
            starcoder::undo(path, &mut joined, known.heads)?;
        }

        let tensors = named(program, joined)?;
        check_rows(&old, &tensors)?;

        let mut metadata = Metadata::new();
        let shapes = hyper::Shapes(&tensors);
        hyper::write(&old, architecture, &known, &shapes, &mut metadata)?;
        let mut notes = known.notes.clone();
        notes.extend(hyper::notes(&old, &known));
        if parts > 1 {
            notes.push(format!("joined from {parts} files"));
        }
        notes.extend(tokenizer(&old, architecture, options, &mut metadata)?);
        vocab::require_pre(options.pre.as_deref(), &metadata)?;
        Ok(Self { old, architecture, known, tensors, metadata, notes })
    }

    /// Plans the conversion.
    ///
    /// # Errors
    /// If a tensor cannot have the type that it should, or the tensors do not make up a model of
    /// the architecture.
    pub fn plan(&self, options: &Options) -> Result<Conversion, Error> {
        let mut notes = self.notes.clone();
        let plain: Vec<Tensor> =
            self.tensors.iter().map(|tensor| self.floats(tensor)).collect::<Result<_, _>>()?;
        let target = options.outtype.filter(|target| *target != Target::Copy);
        let (mut items, mut changes) = match target {
            None => self.exact(plain)?,
            Some(target) => self.wanted(plain, target, &options.quantization, &mut notes)?,
        };
        items.extend(self.filters().map(|tensor| Item::new(tensor, TensorType::F32)));
        changes.extend(self.filters().map(|tensor| Change {
            name: tensor.name,
            from: "F32".into(),
            to: TensorType::F32,
            how: How::AsItIs,
        }));
        notes.extend(choice::summary(&changes, target));
        let file_type = self.file_type(target, &items, &changes)?;
        let mut metadata = self.keys(file_type, options);
        gguf_quantize::set_overrides(&mut metadata, &options.quantization);
        let job = Job { metadata, items, check_finite: true, order: ByteOrder::Little };
        self.check_architecture(&job)?;
        let stem = self.old.path.file_stem().unwrap_or_default().to_string_lossy();
        Ok(Conversion { job, file_name: format!("{stem}.gguf"), notes, changes })
    }

    /// All keys, in the order of the official converter of these files.
    fn keys(&self, file_type: u32, options: &Options) -> Metadata {
        let mut metadata = Metadata::new();
        metadata.set("general.architecture", self.architecture);
        let name = self.old.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        metadata.set("general.name", options.model_name.clone().unwrap_or(name));
        let (container, mix) = (self.old.container, hyper::mix_name(&self.old));
        let description = format!("converted from legacy {container} {mix} format");
        metadata.set("general.description", description);
        metadata.set("general.file_type", file_type);
        metadata.set("general.quantization_version", QUANTIZATION_VERSION);
        for (key, value) in self.metadata.iter() {
            metadata.push(key.to_owned(), value.clone());
        }
        metadata
    }

    /// A tensor as today's programs expect it, in the elements or blocks of the file if they are
    /// those of today, and in elements of single precision otherwise.
    fn floats(&self, tensor: &OldTensor) -> Result<Tensor, Error> {
        let (ty, source): (_, Arc<dyn Source>) = match (&tensor.floats, tensor.whole.form) {
            (Some(floats), _) => (TensorType::F32, floats.clone()),
            (None, StorageType::Today(ty)) => (ty, tensor.whole.bytes.clone()),
            (None, StorageType::Old(_)) => {
                unreachable!("old blocks are read as floats: see `named`")
            }
        };
        self.tensor(tensor, ty, source)
    }

    /// What a program wrote otherwise than a GGUF has it is undone.
    fn tensor(
        &self,
        tensor: &OldTensor,
        ty: TensorType,
        source: Arc<dyn Source>,
    ) -> Result<Tensor, Error> {
        let JoinedTensor { name, dims, .. } = &tensor.whole;
        let fault = |what: String| {
            let what = format!("tensor `{name}` {what}");
            let help = "the file is damaged, or of another program";
            Error::input("legacy-damaged", &self.old.path, what, help)
        };
        let shape = |dims: &[u64]| Shape::new(dims).ok_or_else(|| fault("is too deep".into()));
        let at = Stored { source, offset: 0 };
        let stored = Tensor::stored(&*tensor.name, shape(dims)?, ty, at);
        let step = match self.old.layout.program {
            // Queries, keys and values of one head after another.
            Program::GptNeox if tensor.name.contains(".attn_qkv.") => {
                let heads = u64::from(self.known.heads);
                let head = dims.last().copied().unwrap_or(0) / 3 / heads;
                Some(Step::Regroup { groups: heads, kinds: [head; 3] })
            }
            // Stored as a column, to be added to one.
            Program::Whisper if name.contains(".conv") && name.ends_with(".bias") => {
                let to = shape(&[dims.iter().product()])?;
                Some(Step::Reshape { from: shape(dims)?, to })
            }
            _ => None,
        };
        match step {
            Some(step) => stored.changed(step).map_err(|misfit| fault(misfit.to_string())),
            None => Ok(stored),
        }
    }

    /// Whisper's filter bank, which other files do not hold.
    fn filters(&self) -> impl Iterator<Item = Tensor> {
        self.old.vocabulary.filters.iter().filter_map(|filters| {
            Some(Tensor {
                name: "mel_filters".to_owned(),
                shape: Shape::new(&[filters.columns.into(), filters.rows.into()])?,
                stored_type: TensorType::F32,
                content: Content::Values(filters.values.clone()),
            })
        })
    }

    /// The tensors are those of the architecture, in its shapes.
    fn check_architecture(&self, job: &Job) -> Result<(), Error> {
        const CODES: [&str; 5] =
            ["tensor-missing", "tensor-unexpected", "tensor-shape", "layer-count", "vocab-rows"];
        let findings = gguf::check_raw_header(&job.header()?.into_raw());
        match findings.iter().find(|finding| CODES.contains(&finding.code)) {
            Some(finding) => {
                let what = format!("does not make up a {} model: {finding}", self.architecture);
                let help = "the file is damaged; if not, name its program with --architecture";
                Err(Error::input("legacy-misfit", &self.old.path, what, help))
            }
            None => Ok(()),
        }
    }
}

/// Sets the `tokenizer.*` keys: from the folder if it has a tokenizer, else from the file.
fn tokenizer(
    old: &OldFile,
    architecture: &str,
    options: &Options,
    metadata: &mut Metadata,
) -> Result<Vec<String>, Error> {
    // Files of the time do not say how text is cut into words.
    let usual = match architecture {
        "mpt" | "bloom" | "falcon" | "starcoder" => architecture,
        _ => "gpt-2",
    };
    let has_tokenizer = |dir: &&PathBuf| {
        ["tokenizer.json", "tokenizer.model"].iter().any(|name| dir.join(name).is_file())
    };
    let pre = options.pre.as_deref();
    let Some(dir) = options.metadata_dir.as_ref().filter(has_tokenizer) else {
        return Ok(tokens::write(old, pre.unwrap_or(usual), metadata));
    };
    let (kind, hints): (_, &[&str]) = match old.layout.program {
        Program::Llama => (vocab::Kind::Llama, &[]),
        Program::Replit => (vocab::Kind::SentencePieceElseBpe, &[]),
        _ => (vocab::Kind::Bpe, &[usual]),
    };
    let vocab_size = old.header.get(Field::Vocabulary).map(u64::from);
    let loaded = vocab::load(dir, kind, &vocab::Options { pre, hints, vocab_size })?;
    for (key, value) in loaded.metadata.iter() {
        metadata.push(key.to_owned(), value.clone());
    }
    Ok(loaded.notes)
}

/// The embedding has a row for each token that the header counts: what is made for each of them is
/// then bounded by the file.
fn check_rows(old: &OldFile, tensors: &[OldTensor]) -> Result<(), Error> {
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let rows = embedding.and_then(|tensor| tensor.whole.dims.get(1).copied());
    let expected = old.header.get(Field::Vocabulary).map(u64::from);
    if rows != expected {
        let shown = |count: Option<u64>| count.map_or("no".to_owned(), |count| count.to_string());
        let what = format!(
            "the embedding has {} rows for the {} tokens of the header",
            shown(rows),
            shown(expected)
        );
        let help = "the file is incomplete or damaged";
        return Err(Error::input("legacy-damaged", &old.path, what, help));
    }
    Ok(())
}

/// The tensors that stay, by their names in a GGUF.
fn named(program: Program, joined: Vec<JoinedTensor>) -> Result<Vec<OldTensor>, Error> {
    let mut tensors = Vec::new();
    for whole in joined {
        // Files with other tensors have been refused.
        let Some(Meaning::Named(name)) = names::meaning(program, &whole.name) else { continue };
        let (floats, today) = match whole.form {
            StorageType::Today(_) => (None, None),
            StorageType::Old(old) => (
                Some(Arc::new(Converted::floats(whole.bytes.clone(), old))),
                Converted::today(whole.bytes.clone(), old)
                    .map(|(ty, blocks)| (ty, Arc::new(blocks))),
            ),
        };
        tensors.push(OldTensor { whole, name, floats, today });
    }
    if ties_output(program) {
        let find = |name: &str| tensors.iter().position(|tensor: &OldTensor| tensor.name == name);
        if let (Some(output), Some(embedding)) = (find("output.weight"), find("token_embd.weight"))
            && same_bytes(&tensors[output].whole, &tensors[embedding].whole)?
        {
            tensors.remove(output);
        }
    }
    Ok(tensors)
}

/// Whether the output matrix of these models is usually the embedding, written out again by their
/// converters. A GGUF has it once.
fn ties_output(program: Program) -> bool {
    use Program::{Bloom, Falcon, Gpt2, Mpt, Replit};
    matches!(program, Gpt2 | Bloom | Falcon | Mpt | Replit)
}

fn same_bytes(a: &JoinedTensor, b: &JoinedTensor) -> Result<bool, Error> {
    const WINDOW: u64 = 1 << 20;
    let len = a.bytes.byte_len();
    if a.dims != b.dims || a.form.name() != b.form.name() || len != b.bytes.byte_len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for start in (0..len).step_by(WINDOW as usize) {
        for (tensor, buffer) in [(a, &mut left), (b, &mut right)] {
            buffer.resize(WINDOW.min(len - start) as usize, 0);
            tensor.bytes.read_at(buffer, start)?;
        }
        if left != right {
            return Ok(false);
        }
    }
    Ok(true)
}
