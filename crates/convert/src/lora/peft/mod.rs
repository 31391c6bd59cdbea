//! Conversion of adapters of the `peft` library: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! The conversion needs `config.json` of the base model. It writes the keys of llama.cpp's converter, and keys that
//! identify the base model.

mod config;
mod role;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use gguf::{
    Array, ByteOrder, Error, Metadata, ModelName, ParameterCount, QUANTIZATION_VERSION, Shape,
    TensorType,
};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry, json};
use gguf_lora::{
    ALPHA, BASE_DIGEST, EMBEDDING, INVOCATION_TOKENS, PairDims, SUFFIXES, base_digest,
};
use gguf_models::convert::{Converter, ExpertSlot, MappedTensor, Mapping, assembly, foreign};
use gguf_pipeline::{Function, Item, Job, Step, Tensor, TensorMismatch};
use gguf_quantize::recipe::{Preset, Target as Recipe};
use serde_json::Value;

use self::config::{AdapterConfig, MERGE};
use self::role::{Part, Role, role};
use crate::hf;
use crate::hf::{Conversion, HfOptions};
use crate::model_card::GeneralMetadata;

/// Configuration file, which marks a directory as an adapter.
pub const CONFIG: &str = "adapter_config.json";

/// Weight file.
const WEIGHTS: &str = "adapter_model.safetensors";

/// Weight file in PyTorch's format.
const OLD_WEIGHTS: &str = "adapter_model.bin";

/// Returns the weight file of the adapter in `dir`.
pub fn weights(dir: &Path) -> PathBuf {
    let old = dir.join(OLD_WEIGHTS);
    let new = dir.join(WEIGHTS);
    if old.is_file() && !new.is_file() { old } else { new }
}

/// Returns the directory of the base model: `base`, or else the directory that the adapter's configuration names.
///
/// # Errors
/// If the configuration cannot be read, or its base model is not a local directory.
pub fn base_dir(dir: &Path, base: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(base) = base {
        return Ok(base.to_owned());
    }
    let config = json::read(&dir.join(CONFIG))?;
    let named = config.get("base_model_name_or_path").and_then(Value::as_str).unwrap_or_default();
    let found = [dir.join(named), PathBuf::from(named)]
        .into_iter()
        .find(|path| !named.is_empty() && path.join("config.json").is_file());
    found.ok_or_else(|| {
        let what = format!("the base model `{named}` of the adapter is not a local directory");
        let help = "specify the directory of the base model with --base; it only needs config.json";
        Error::request("adapter-base-missing", what, help)
    })
}

/// Plans the conversion of the adapter in `dir`, whose matrices are those of `checkpoint`.
///
/// `base` is the directory of the base model. With its `weights`, the output identifies the base model's matrices.
///
/// # Errors
/// If a file is missing or invalid, if GGUF does not support the kind of adapter, or if the matrices do not match the
/// base model.
pub fn plan(
    dir: &Path,
    checkpoint: &Checkpoint,
    base: &Path,
    weights: Option<&Checkpoint>,
    options: &HfOptions,
) -> Result<Conversion, Error> {
    let mut config = Config::read(base)?;
    let converter = hf::find_converter(&mut config, checkpoint, options)?;
    converter.complete_config(&mut config)?;
    let converter = converter.of_model(&config);
    let adapter = AdapterConfig::read(dir)?;
    let tensors = tensors(&adapter, &config, converter, checkpoint)?;
    if tensors.is_empty() {
        return Err(incomplete(&adapter, "has no matrices".into()));
    }
    let matrices = float_type(options.outtype, &tensors)?;

    let general = GeneralMetadata::load(
        dir,
        Some(config.json()),
        &ParameterCount::from_tensors(tensors.iter().map(|t| (t.name.as_str(), &t.shape[..]))),
        options.metadata.as_deref(),
        options.model_name.as_deref(),
    )?;
    // The size label would be the adapter's own number of parameters.
    let general = GeneralMetadata { size_label: None, ..general };
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", converter.architecture());
    metadata.set("general.type", "adapter");
    metadata.set("adapter.type", "lora");
    general.write_to(&mut metadata);
    metadata.set(ALPHA, adapter.written_alpha());
    let mut notes = checkpoint.notes.clone();
    if let Some(tokens) = &adapter.invocation_tokens {
        metadata.set(INVOCATION_TOKENS, Array::from(&tokens[..]));
        notes.push(
            "the adapter is an activated LoRA (aLoRA): llama-server applies it after its invocation tokens; `--lora` \
             and `gguf lora` refuse it"
                .into(),
        );
    }
    metadata.set("general.quantization_version", QUANTIZATION_VERSION);
    if let Some(weights) = weights {
        let of_base = hf::tensors(&config, converter, weights, &mut Vec::new())?;
        require_fit(&adapter, &tensors, &of_base)?;
        identify_base(&mut metadata, base, &config, &of_base)?;
    }
    gguf_quantize::set_overrides(&mut metadata, &options.quantization);

    let file_name = ModelName::from_metadata(&metadata, Some(&matrices.name())).to_string();
    let items = tensors.into_iter().map(|tensor| {
        let target = match tensor.shape.len() {
            0 | 1 => TensorType::F32,
            // The rank may not divide into blocks.
            _ if matrices.byte_len(&tensor.shape).is_none() => TensorType::F16,
            _ => matrices,
        };
        Item::new(tensor, target)
    });
    let job =
        Job { metadata, items: items.collect(), check_finite: true, order: ByteOrder::Little };
    Ok(Conversion { job, file_name, notes })
}

/// Writes the keys of the base model, if the adapter's model card lacks them.
fn identify_base(
    metadata: &mut Metadata,
    base: &Path,
    config: &Config,
    tensors: &[Tensor],
) -> Result<(), Error> {
    let names = tensors.iter().map(|tensor| (tensor.name.as_str(), &tensor.shape[..]));
    if metadata.get("general.base_model.count").is_none() {
        let parameters = ParameterCount::from_tensors(names.clone());
        let general = GeneralMetadata::load(base, Some(config.json()), &parameters, None, None)?;
        let known = [
            ("name", general.name),
            ("version", general.version),
            ("organization", general.organization),
            ("url", general.source_url),
            ("repo_url", general.source_repo_url),
        ];
        metadata.push("general.base_model.count", 1u32);
        for (key, text) in known {
            if let Some(text) = text {
                metadata.push(format!("general.base_model.0.{key}"), text);
            }
        }
    }
    metadata.push(BASE_DIGEST, base_digest(names));
    Ok(())
}

/// A pair of matrices of the adapter and the module that they belong to.
struct ModulePair<'a> {
    module: &'a str,
    is_embedding: bool,
    /// The first and the second matrix.
    matrices: [Option<&'a Entry>; 2],
}

/// Tensors of an adapter by role.
struct Roles<'a> {
    pairs: Vec<ModulePair<'a>>,
    /// Tensors that are trained as a whole: name of the module, name in the module.
    whole: Vec<(&'a Entry, &'a str, &'a str)>,
}

impl<'a> Roles<'a> {
    /// Sorts the tensors of an adapter by role.
    ///
    /// # Errors
    /// If a tensor belongs to another kind of adapter, or the tensors to several adapters, or if the base model of the
    /// adapter had a vocabulary of another size.
    fn of(checkpoint: &'a Checkpoint, config: &Config) -> Result<Self, Error> {
        let mut found = Self { pairs: Vec::new(), whole: Vec::new() };
        let mut places: HashMap<&str, usize> = HashMap::new();
        let mut adapter: Option<&str> = None;
        for entry in &checkpoint.entries {
            let refuse = |what: String| {
                let what = format!("tensor `{}` {what}", entry.name);
                Err(Error::input("adapter-unsupported", &checkpoint.path_of(entry), what, MERGE))
            };
            let part = match role(&entry.name) {
                Role::Matrix(part) => part,
                Role::Whole(module, tensor) => {
                    found.whole.push((entry, module, tensor));
                    continue;
                }
                Role::BaseCopy(module) => {
                    let rows = entry.shape.first().copied();
                    let is_table = EMBEDDING_MODULES.iter().any(|end| module.ends_with(end));
                    let vocabulary = config.u32(&["vocab_size"])?.map(u64::from);
                    if is_table && vocabulary.is_some_and(|size| rows != Some(size)) {
                        return refuse(format!(
                            "has the shape {:?}, but the vocabulary of the base model has {} tokens: it was \
                             resized for the adapter",
                            entry.shape,
                            vocabulary.unwrap_or_default()
                        ));
                    }
                    continue;
                }
                Role::Other if entry.name.contains("lora_magnitude_vector") => {
                    return refuse("belongs to a DoRA adapter".into());
                }
                Role::Other => {
                    return refuse(
                        "is no matrix of a pair: it belongs to another kind of adapter".into(),
                    );
                }
            };
            if let Some(other) =
                adapter.replace(part.adapter).filter(|other| *other != part.adapter)
            {
                return refuse(format!(
                    "belongs to the adapter `{}`, others to `{other}`",
                    part.adapter
                ));
            }
            let place = *places.entry(part.module).or_insert_with(|| {
                let Part { module, is_embedding, .. } = part;
                found.pairs.push(ModulePair { module, is_embedding, matrices: [None; 2] });
                found.pairs.len() - 1
            });
            found.pairs[place].matrices[usize::from(part.is_second)] = Some(entry);
        }
        Ok(found)
    }
}

/// Returns the tensors of the output, in the order of the adapter's modules.
fn tensors(
    adapter: &AdapterConfig,
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
) -> Result<Vec<Tensor>, Error> {
    let Roles { pairs, whole } = Roles::of(checkpoint, config)?;
    let mut tensors = Vec::new();
    for (entry, module, tensor) in whole {
        tensors.push(replacement(
            config,
            converter,
            checkpoint,
            entry,
            &format!("{module}.{tensor}"),
        )?);
    }
    let mut experts: Vec<(String, Vec<Option<[Tensor; 2]>>)> = Vec::new();
    for ModulePair { module, is_embedding, matrices } in pairs {
        let [Some(a), Some(b)] = matrices else {
            let what = format!("has only one matrix for `{module}`");
            return Err(incomplete(adapter, what));
        };
        let refuse = |code, what: String, help| {
            let what = format!("the pair for `{module}` {what}");
            Error::input(code, &checkpoint.path_of(a), what, help)
        };
        let fault = |what: String| refuse("adapter-other-base", what, OTHER_BASE);
        let unsupported = |what: String| refuse("adapter-unsupported", what, MERGE);
        let unfit = |misfit: TensorMismatch| unsupported(misfit.to_string());
        let rank = a.shape.first().copied().unwrap_or(0);
        if a.shape.len() != 2 || b.shape.len() != 2 || b.shape[1] != rank || rank == 0 {
            return Err(fault(format!("has the shapes {:?} and {:?}", a.shape, b.shape)));
        }
        let correction = adapter.correction(module, rank)?;
        let made = match converter
            .mapping(config, &foreign::text_name(&format!("{module}.weight")))?
        {
            Mapping::Tensors(made) | Mapping::WithVectors(_, made) => made,
            Mapping::Shared(name) => {
                return Err(unsupported(format!(
                    "adapts a tensor that the base model shares with `{name}`; GGUF has one tensor for both"
                )));
            }
            Mapping::Dropped | Mapping::DroppedIfZero if module.ends_with("lm_head") => {
                return Err(unsupported(TIED_OUTPUT.into()));
            }
            Mapping::Dropped | Mapping::DroppedIfZero | Mapping::Unknown => {
                let what = format!(
                    "belongs to no tensor of the architecture {}",
                    converter.architecture()
                );
                return Err(fault(what));
            }
        };
        for MappedTensor { name, steps, slot } in made {
            if name == "output.weight" && config.bool("tie_word_embeddings")? == Some(true) {
                return Err(unsupported(TIED_OUTPUT.into()));
            }
            if name == EMBEDDING && adapter.ties_output {
                let what = "adapts the output projection too (`ensure_weight_tying`), for which GGUF has no tensor";
                return Err(unsupported(what.into()));
            }
            let mut pair =
                [assembly::unmodified(checkpoint, a)?, assembly::unmodified(checkpoint, b)?];
            // The product for an embedding has a column per token. That for a module `Conv1D` is transposed, as its
            // weight is, whatever `fan_in_fan_out` says: PEFT corrects it.
            if is_embedding || is_conv1d(&steps) {
                pair = transposed(pair).map_err(unfit)?;
            }
            if correction != 1.0 {
                let [_, b] = &mut pair;
                *b = b.clone().changed(Step::Map(Function::Times(correction))).map_err(unfit)?;
            }
            for step in steps {
                pair = apply_step(pair, step).map_err(unfit)?;
            }
            if name == EMBEDDING {
                let [a, b] = pair;
                pair = [b, a.changed(Step::Transpose).map_err(unfit)?];
            }
            let Some(ExpertSlot { index, count }) = slot else {
                tensors.extend(named(&name, pair));
                continue;
            };
            if converter.is_row_stacked(&name) {
                let what =
                    format!("belongs to a part of `{name}`, which GGUF adapters do not support");
                return Err(unsupported(what));
            }
            let position = experts.iter().position(|(known, _)| *known == name);
            let position = position.unwrap_or_else(|| {
                experts.push((name.clone(), vec![None; count as usize]));
                experts.len() - 1
            });
            let parts = &mut experts[position].1;
            let slot = parts.get_mut(index as usize);
            *slot.ok_or_else(|| {
                fault(format!("belongs to an expert beyond the {count} experts of the base model"))
            })? = Some(pair);
            if let Some(parts) = parts.iter().cloned().collect::<Option<Vec<_>>>() {
                experts.remove(position);
                let (a, b): (Vec<_>, Vec<_>) = parts.into_iter().map(|[a, b]| (a, b)).unzip();
                let pair = [
                    Tensor::joined(&*name, a).map_err(unfit)?,
                    Tensor::joined(&*name, b).map_err(unfit)?,
                ];
                tensors.extend(named(&name, pair));
            }
        }
    }
    match experts.first() {
        Some((name, _)) => {
            let what = format!("adapts only some of the experts of `{name}`");
            Err(incomplete(adapter, what))
        }
        None => Ok(tensors),
    }
}

/// Refuses an adapter whose tensors do not fit those of the base model.
fn require_fit(adapter: &AdapterConfig, tensors: &[Tensor], base: &[Tensor]) -> Result<(), Error> {
    let path = adapter.path.with_file_name(WEIGHTS);
    let refuse = |what| Err(Error::input("adapter-other-base", &path, what, OTHER_BASE));
    let by_name = |tensors: &[Tensor]| -> HashMap<String, Shape> {
        tensors.iter().map(|tensor| (tensor.name.clone(), tensor.shape)).collect()
    };
    let (ours, theirs) = (by_name(tensors), by_name(base));
    for Tensor { name, shape, .. } in tensors {
        let (name, a) = match name.strip_suffix(SUFFIXES[0]) {
            Some(name) => (name, Some(shape)),
            None if name.ends_with(SUFFIXES[1]) => continue,
            None => (name.as_str(), None),
        };
        let Some(base) = theirs.get(name) else {
            return refuse(format!("adapts `{name}`, which the base model lacks"));
        };
        let fits = match a {
            Some(a) => {
                let b = ours.get(&format!("{name}{}", SUFFIXES[1]));
                b.and_then(|b| PairDims::new(name, a, b)).is_some_and(|dims| dims.fit(base))
            }
            None => base == shape,
        };
        if !fits {
            return refuse(format!("does not fit `{name}`, which is {base} in the base model"));
        }
    }
    Ok(())
}

/// Whether a module is a `Conv1D` of `transformers`, which stores its matrix transposed.
fn is_conv1d(steps: &[Step]) -> bool {
    matches!(steps, [Step::Transpose, rest @ ..] if !rest.contains(&Step::Transpose))
}

fn incomplete(adapter: &AdapterConfig, what: String) -> Error {
    let path = adapter.path.with_file_name(WEIGHTS);
    Error::input("adapter-incomplete", &path, what, "download the adapter again")
}

const OTHER_BASE: &str = "check that --base is the model that the adapter was trained on";

/// Names of modules with a row per token.
const EMBEDDING_MODULES: [&str; 2] = ["embed_tokens", "lm_head"];

const TIED_OUTPUT: &str = "adapts the output projection, which is tied to the token embedding in the base model: \
                           GGUF has one tensor for both";

fn named(name: &str, pair: [Tensor; 2]) -> [Tensor; 2] {
    let mut suffixes = SUFFIXES.into_iter();
    pair.map(|tensor| Tensor {
        name: format!("{name}{}", suffixes.next().unwrap_or_default()),
        ..tensor
    })
}

/// Returns the pair whose product is the transposed product: `(B A)' = A' B'`.
fn transposed([a, b]: [Tensor; 2]) -> Result<[Tensor; 2], TensorMismatch> {
    Ok([b.changed(Step::Transpose)?, a.changed(Step::Transpose)?])
}

/// Returns the pair whose product is the product after `step`.
fn apply_step(pair: [Tensor; 2], step: Step) -> Result<[Tensor; 2], TensorMismatch> {
    match step {
        Step::Transpose => transposed(pair),
        // Rows of the product come from the second matrix.
        Step::InterleaveHalves { .. }
        | Step::Regroup { .. }
        | Step::Exchange { .. }
        | Step::Pick { .. } => {
            let [a, b] = pair;
            Ok([a, b.changed(step)?])
        }
        // Columns of the product come from the first matrix.
        Step::ExchangeColumns { .. } => {
            let [a, b] = pair;
            Ok([a.changed(step)?, b])
        }
        Step::Map(Function::Times(_)) => {
            let [a, b] = pair;
            Ok([a, b.changed(step)?])
        }
        other => {
            Err(format!("does not support the conversion step {other:?} of the base tensor").into())
        }
    }
}

/// Returns a vector, such as a norm, that replaces the base model's.
fn replacement(
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
    entry: &Entry,
    name: &str,
) -> Result<Tensor, Error> {
    let refuse = |code, what: &str, help: &'static str| {
        let what = format!("tensor `{}` {what}", entry.name);
        Err(Error::input(code, &checkpoint.path_of(entry), what, help))
    };
    let Mapping::Tensors(made) = converter.mapping(config, &foreign::text_name(name))? else {
        return refuse("adapter-other-base", "is not part of an adapter", OTHER_BASE);
    };
    let ([MappedTensor { name, steps, slot: None }], 1) = (&made[..], entry.shape.len()) else {
        let what = "is a whole tensor, not a pair: it is fully trained (`modules_to_save`), for which GGUF adapters \
                    have no form but for norms";
        return refuse("adapter-unsupported", what, MERGE);
    };
    let tensor = Tensor { name: name.clone(), ..assembly::unmodified(checkpoint, entry)? };
    steps.iter().copied().try_fold(tensor, Tensor::changed).map_err(|what| {
        let what = format!("tensor `{name}` {what}");
        Error::input("adapter-other-base", &checkpoint.path_of(entry), what, OTHER_BASE)
    })
}

/// Returns the type of all matrices. The default is F32, as in llama.cpp's converter, or the 16-bit type of the adapter.
fn float_type(outtype: Option<Recipe>, tensors: &[Tensor]) -> Result<TensorType, Error> {
    match outtype {
        None => Ok(tensors
            .iter()
            .find(|tensor| tensor.shape.len() > 1)
            .map_or(TensorType::F32, |tensor| tensor.stored_type)),
        Some(Recipe::Type(ty)) if !ty.is_quantized() => Ok(ty),
        Some(Recipe::Preset(mix))
            if matches!(mix, Preset::F32 | Preset::F16 | Preset::BF16 | Preset::Q8_0) =>
        {
            Ok(mix.default_type())
        }
        Some(other) => {
            let what = format!("{other} is not a type of adapters");
            Err(Error::request("adapter-type", what, "choose f32, f16, bf16 or q8_0"))
        }
    }
}
