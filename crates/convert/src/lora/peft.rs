//! Conversion of adapters of the `peft` library: `adapter_config.json` and `adapter_model.safetensors`.
//!
//! The conversion needs `config.json` of the base model. It writes the keys of llama.cpp's converter, and keys that
//! identify the base model.

use std::path::{Path, PathBuf};

use gguf::{
    ByteOrder, Error, Metadata, ModelName, ParameterCount, QUANTIZATION_VERSION, TensorType,
};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry, json};
use gguf_models::convert::{Converter, ExpertSlot, MappedTensor, Mapping, assembly};
use gguf_pipeline::{Function, Item, Job, Step, Tensor, TensorMismatch};
use gguf_quantize::recipe::{Preset, Target as Recipe};
use serde_json::Value;

use super::{ALPHA, BASE_DIGEST, EMBEDDING, SUFFIXES, base_digest};
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
    metadata.set(ALPHA, adapter.alpha);
    metadata.set("general.quantization_version", QUANTIZATION_VERSION);
    identify_base(&mut metadata, base, &config, converter, weights)?;
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
    Ok(Conversion { job, file_name, notes: Vec::new() })
}

/// Writes the keys of the base model, if the adapter's model card lacks them.
fn identify_base(
    metadata: &mut Metadata,
    base: &Path,
    config: &Config,
    converter: &'static dyn Converter,
    weights: Option<&Checkpoint>,
) -> Result<(), Error> {
    let Some(weights) = weights else { return Ok(()) };
    let tensors = hf::tensors(config, converter, weights, &mut Vec::new())?;
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

/// Content of `adapter_config.json`.
struct AdapterConfig {
    path: PathBuf,
    root: Value,
    alpha: f32,
    /// Whether updates are divided by the square root of the rank instead of the rank.
    rank_stabilized: bool,
    /// Whether the base model stores its matrices transposed, as GPT-2 does.
    transposed: bool,
}

impl AdapterConfig {
    fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(CONFIG);
        let root = json::read(&path)?;
        let refuse = |what: String| {
            let help = "merge it into the base model with `peft` and convert the result";
            Err(Error::input("adapter-unsupported", &path, what, help))
        };
        let flag = |name: &str| root.get(name).and_then(Value::as_bool).unwrap_or(false);
        let text = |name: &str| root.get(name).and_then(Value::as_str);
        match text("peft_type") {
            Some("LORA") => {}
            other => return refuse(format!("`peft_type` is {other:?}; expected LORA")),
        }
        if flag("use_dora") {
            return refuse("is a DoRA adapter, which GGUF does not support".into());
        }
        if text("bias").is_some_and(|bias| bias != "none") {
            return refuse("has trained biases, which GGUF adapters do not support".into());
        }
        let Some(alpha) = root.get("lora_alpha").and_then(Value::as_f64) else {
            let help = "take the file from the adapter's repository";
            let what = "`lora_alpha` is missing; expected a number";
            return Err(Error::input("config-field-missing", &path, what, help));
        };
        let (rank_stabilized, transposed) = (flag("use_rslora"), flag("fan_in_fan_out"));
        Ok(Self { alpha: alpha as f32, rank_stabilized, transposed, path, root })
    }

    /// Returns the factor for the second matrix of a module, which corrects the scale `alpha / rank` that runtimes
    /// apply to all products.
    fn correction(&self, module: &str, rank: u64) -> f32 {
        let alpha = self.pattern("alpha_pattern", module).unwrap_or(f64::from(self.alpha));
        let rank = rank as f64;
        let divisor = if self.rank_stabilized { rank.sqrt() } else { rank };
        ((alpha / divisor) / (f64::from(self.alpha) / rank)) as f32
    }

    /// Returns the value for a module in a table of name suffixes. The longest matching suffix wins.
    fn pattern(&self, table: &str, module: &str) -> Option<f64> {
        let table = self.root.get(table)?.as_object()?;
        let fits = |ending: &str| {
            module.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let found = table.iter().filter(|(ending, _)| fits(ending));
        found.max_by_key(|(ending, _)| ending.len())?.1.as_f64()
    }
}

/// Matrices for a tensor of the base model.
#[derive(Default)]
struct ModulePair<'a> {
    a: Option<&'a Entry>,
    b: Option<&'a Entry>,
    is_embedding: bool,
}

/// Role of an adapter's tensor, with the name of its module.
enum TensorRole<'n> {
    A(&'n str),
    B(&'n str),
    EmbeddingA(&'n str),
    EmbeddingB(&'n str),
    /// Copy of a tensor of the base model.
    BaseCopy,
    Other(&'n str),
}

fn role(name: &str) -> TensorRole<'_> {
    let name = name.strip_prefix("base_model.model.").unwrap_or(name);
    let ends = |endings: &[&str]| endings.iter().find_map(|ending| name.strip_suffix(ending));
    if let Some(module) = ends(&[".lora_A.weight", ".lora_A.default.weight"]) {
        TensorRole::A(module)
    } else if let Some(module) = ends(&[".lora_B.weight", ".lora_B.default.weight"]) {
        TensorRole::B(module)
    } else if let Some(module) = ends(&[".lora_embedding_A", ".lora_embedding_A.default"]) {
        TensorRole::EmbeddingA(module)
    } else if let Some(module) = ends(&[".lora_embedding_B", ".lora_embedding_B.default"]) {
        TensorRole::EmbeddingB(module)
    } else if name.ends_with(".base_layer.weight") {
        TensorRole::BaseCopy
    } else {
        TensorRole::Other(name)
    }
}

/// Returns the tensors of the output, in the order of the adapter's modules.
fn tensors(
    adapter: &AdapterConfig,
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
) -> Result<Vec<Tensor>, Error> {
    let mut modules: Vec<(&str, ModulePair)> = Vec::new();
    let mut tensors = Vec::new();
    for entry in &checkpoint.entries {
        let (module, is_embedding, is_a) = match role(&entry.name) {
            TensorRole::BaseCopy => continue,
            TensorRole::A(module) => (module, false, true),
            TensorRole::B(module) => (module, false, false),
            TensorRole::EmbeddingA(module) => (module, true, true),
            TensorRole::EmbeddingB(module) => (module, true, false),
            TensorRole::Other(name) => {
                tensors.push(replaced(config, converter, checkpoint, entry, name)?);
                continue;
            }
        };
        let found = match modules.iter_mut().find(|(known, _)| *known == module) {
            Some((_, found)) => found,
            None => {
                &mut modules
                    .push_mut((module, ModulePair { is_embedding, ..ModulePair::default() }))
                    .1
            }
        };
        *(if is_a { &mut found.a } else { &mut found.b }) = Some(entry);
    }
    let mut experts: Vec<(String, Vec<Option<[Tensor; 2]>>)> = Vec::new();
    for (module, found) in modules {
        let (Some(a), Some(b)) = (found.a, found.b) else {
            let what = format!("has only one matrix for `{module}`");
            return Err(incomplete(adapter, what));
        };
        let fault = |what: String| {
            let what = format!("the pair for `{module}` {what}");
            Error::input("adapter-other-base", &checkpoint.path_of(a), what, OTHER_BASE)
        };
        let unfit = |misfit: TensorMismatch| fault(misfit.to_string());
        let rank = a.shape.first().copied().unwrap_or(0);
        if a.shape.len() != 2 || b.shape.len() != 2 || b.shape[1] != rank || rank == 0 {
            return Err(fault(format!("has the shapes {:?} and {:?}", a.shape, b.shape)));
        }
        let made = match converter.mapping(config, &format!("{module}.weight"))? {
            Mapping::Tensors(made) | Mapping::WithVectors(_, made) => made,
            Mapping::Dropped | Mapping::DroppedIfZero | Mapping::Shared(_) | Mapping::Unknown => {
                let what = format!(
                    "belongs to no tensor of the architecture {}",
                    converter.architecture()
                );
                return Err(fault(what));
            }
        };
        for MappedTensor { name, steps, slot } in made {
            let mut pair =
                [assembly::unmodified(checkpoint, a)?, assembly::unmodified(checkpoint, b)?];
            let correction = adapter.correction(module, rank);
            if correction != 1.0 {
                let [_, b] = &mut pair;
                *b = b.clone().changed(Step::Map(Function::Times(correction))).map_err(unfit)?;
            }
            // The base matrix is stored transposed, and so is its update.
            if adapter.transposed {
                pair = transposed(pair).map_err(unfit)?;
            }
            for step in steps {
                pair = apply_step(pair, step).map_err(unfit)?;
            }
            if found.is_embedding || name == EMBEDDING {
                let [a, b] = pair;
                pair = [a.changed(Step::Transpose).map_err(unfit)?, b];
            }
            let Some(ExpertSlot { index, count }) = slot else {
                tensors.extend(named(&name, pair));
                continue;
            };
            if converter.is_row_stacked(&name) {
                let what =
                    format!("belongs to a part of `{name}`, which GGUF adapters do not support");
                return Err(fault(what));
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

fn incomplete(adapter: &AdapterConfig, what: String) -> Error {
    let path = adapter.path.with_file_name(WEIGHTS);
    Error::input("adapter-incomplete", &path, what, "download the adapter again")
}
const OTHER_BASE: &str = "check that --base is the model that the adapter was trained on";

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

/// Returns a norm that replaces the base model's.
fn replaced(
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
    if name.contains("lora_magnitude_vector") {
        let help = "merge it into the base model with `peft`";
        return refuse("adapter-unsupported", "belongs to a DoRA adapter", help);
    }
    let Mapping::Tensors(made) = converter.mapping(config, name)? else {
        return refuse("adapter-other-base", "is not part of an adapter", OTHER_BASE);
    };
    let ([MappedTensor { name, steps, slot: None }], 1) = (&made[..], entry.shape.len()) else {
        let help = "the adapter has fully trained tensors, such as the embedding of new tokens: merge \
                    it into the base model with `peft` and convert the result";
        return refuse("adapter-unsupported", "is a whole matrix, not a pair", help);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn correction(config: Value, module: &str, rank: u64) -> f32 {
        let config = AdapterConfig {
            path: CONFIG.into(),
            alpha: config["lora_alpha"].as_f64().unwrap() as f32,
            rank_stabilized: config["use_rslora"] == true,
            transposed: false,
            root: config,
        };
        config.correction(module, rank)
    }

    #[test]
    fn other_scales_than_alpha_by_rank_scale_the_second_matrix() {
        let q = "model.layers.0.self_attn.q_proj";
        assert_eq!(correction(json!({"lora_alpha": 8}), q, 4), 1.0);
        // 8 / sqrt(4) instead of 8 / 4.
        assert_eq!(correction(json!({"lora_alpha": 8, "use_rslora": true}), q, 4), 2.0);
        let pattern = json!({"q_proj": 16, "layers.0.self_attn.q_proj": 4, "proj": 99});
        assert_eq!(correction(json!({"lora_alpha": 8, "alpha_pattern": pattern}), q, 4), 0.5);
    }

    #[test]
    fn tensor_names_determine_the_role() {
        let module = "base_model.model.model.layers.0.mlp.up_proj";
        let is_a = |name: &str| matches!(role(name), TensorRole::A("model.layers.0.mlp.up_proj"));
        assert!(is_a(&format!("{module}.lora_A.weight")));
        assert!(is_a(&format!("{module}.lora_A.default.weight")));
        assert!(matches!(role(&format!("{module}.base_layer.weight")), TensorRole::BaseCopy));
        assert!(matches!(role("model.embed_tokens.lora_embedding_B"), TensorRole::EmbeddingB(_)));
        assert!(matches!(role(&format!("{module}.lora_magnitude_vector")), TensorRole::Other(_)));
    }
}
