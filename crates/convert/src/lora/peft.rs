//! Adapters as the `peft` library saves them, to a GGUF.
//!
//! `adapter_config.json` beside `adapter_model.safetensors`; the model that it adapts is needed for
//! its `config.json`. What llama.cpp's converter writes, this writes, and the base's identity.

use std::path::{Path, PathBuf};

use gguf::{
    ByteOrder, Error, Metadata, ModelName, ParameterCount, QUANTIZATION_VERSION, TensorType,
};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry, json};
use gguf_pipeline::{Function, Item, Job, Step, Tensor, TensorMismatch};
use gguf_quantize::recipe::{Preset, Target as Recipe};
use serde_json::Value;

use super::{ALPHA, BASE_DIGEST, EMBEDDING, SUFFIXES, base_digest};
use crate::hf::{self, Conversion, HfOptions};
use crate::model_card::GeneralMetadata;
use gguf_models::convert::{Converter, ExpertSlot, MappedTensor, Mapping, assembly};

/// The file by which a directory is known to hold an adapter.
pub const CONFIG: &str = "adapter_config.json";

/// The file with its matrices.
const WEIGHTS: &str = "adapter_model.safetensors";

/// The same in the form of before safetensors.
const OLD_WEIGHTS: &str = "adapter_model.bin";

/// The file with the matrices of the adapter in `dir`.
pub fn weights(dir: &Path) -> PathBuf {
    let old = dir.join(OLD_WEIGHTS);
    let new = dir.join(WEIGHTS);
    if old.is_file() && !new.is_file() { old } else { new }
}

/// The directory of the model that the adapter in `dir` is for: `base` if it is given, else what
/// the configuration names, if that is a directory.
///
/// # Errors
/// If the configuration cannot be read, or names something that is not here.
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
        let what = format!("the adapter is for `{named}`, which is not here");
        let help = "name the directory of that model with --base; of its files only config.json is \
                    needed";
        Error::request("adapter-base-missing", what, help)
    })
}

/// Plans the conversion of the adapter in `dir`, whose matrices are `checkpoint`'s.
///
/// `base` is the directory of the model that it is for, and `weights` that model's tensors if they
/// are there: then the output tells which matrices the base must have.
///
/// # Errors
/// If a file is missing or wrong, if the adapter is of a kind that GGUF cannot hold, or if its
/// matrices do not fit the base model.
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
    // The size in the name of an adapter would be that of its own few weights.
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
            // Of a rank that is no whole number of blocks.
            _ if matrices.byte_len(&tensor.shape).is_none() => TensorType::F16,
            _ => matrices,
        };
        Item::new(tensor, target)
    });
    let job =
        Job { metadata, items: items.collect(), check_finite: true, order: ByteOrder::Little };
    Ok(Conversion { job, file_name, notes: Vec::new() })
}

/// Says which model the adapter is for, where the card of the adapter does not.
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

/// What `adapter_config.json` says.
struct AdapterConfig {
    path: PathBuf,
    root: Value,
    alpha: f32,
    /// The update of a matrix is divided by the square root of the rank instead of the rank.
    root_of_rank: bool,
    /// Matrices of the base model are stored transposed (GPT-2's).
    transposed: bool,
}

impl AdapterConfig {
    fn read(dir: &Path) -> Result<Self, Error> {
        let path = dir.join(CONFIG);
        let root = json::read(&path)?;
        let refuse = |what: String| {
            let help = "merge it into its model with `peft` and convert the result";
            Err(Error::input("adapter-unsupported", &path, what, help))
        };
        let flag = |name: &str| root.get(name).and_then(Value::as_bool).unwrap_or(false);
        let text = |name: &str| root.get(name).and_then(Value::as_str);
        match text("peft_type") {
            Some("LORA") => {}
            other => return refuse(format!("is an adapter of the kind {other:?}, not LORA")),
        }
        if flag("use_dora") {
            return refuse("is a DoRA adapter, which GGUF has no form for".into());
        }
        if text("bias").is_some_and(|bias| bias != "none") {
            return refuse("has trained biases, which GGUF adapters cannot hold".into());
        }
        let Some(alpha) = root.get("lora_alpha").and_then(Value::as_f64) else {
            let help = "take the file from the adapter's repository";
            let what = "has no number `lora_alpha`";
            return Err(Error::input("config-field-missing", &path, what, help));
        };
        let (root_of_rank, transposed) = (flag("use_rslora"), flag("fan_in_fan_out"));
        Ok(Self { alpha: alpha as f32, root_of_rank, transposed, path, root })
    }

    /// By what the second matrix of a module must be multiplied, because programs scale all
    /// products by `alpha / rank`.
    fn correction(&self, module: &str, rank: u64) -> f32 {
        let alpha = self.pattern("alpha_pattern", module).unwrap_or(f64::from(self.alpha));
        let rank = rank as f64;
        let divisor = if self.root_of_rank { rank.sqrt() } else { rank };
        ((alpha / divisor) / (f64::from(self.alpha) / rank)) as f32
    }

    /// The value for a module in a table of name endings: the longest that fits.
    fn pattern(&self, table: &str, module: &str) -> Option<f64> {
        let table = self.root.get(table)?.as_object()?;
        let fits = |ending: &str| {
            module.strip_suffix(ending).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        };
        let found = table.iter().filter(|(ending, _)| fits(ending));
        found.max_by_key(|(ending, _)| ending.len())?.1.as_f64()
    }
}

/// Both matrices for a tensor of the base model, by its foreign name.
#[derive(Default)]
struct Found<'a> {
    a: Option<&'a Entry>,
    b: Option<&'a Entry>,
    is_embedding: bool,
}

/// What a foreign tensor of an adapter is.
enum Role<'n> {
    A(&'n str),
    B(&'n str),
    EmbeddingA(&'n str),
    EmbeddingB(&'n str),
    /// A copy of a tensor of the base, which adapters sometimes carry.
    OfBase,
    Other(&'n str),
}

fn role(name: &str) -> Role<'_> {
    let name = name.strip_prefix("base_model.model.").unwrap_or(name);
    let ends = |endings: &[&str]| endings.iter().find_map(|ending| name.strip_suffix(ending));
    if let Some(module) = ends(&[".lora_A.weight", ".lora_A.default.weight"]) {
        Role::A(module)
    } else if let Some(module) = ends(&[".lora_B.weight", ".lora_B.default.weight"]) {
        Role::B(module)
    } else if let Some(module) = ends(&[".lora_embedding_A", ".lora_embedding_A.default"]) {
        Role::EmbeddingA(module)
    } else if let Some(module) = ends(&[".lora_embedding_B", ".lora_embedding_B.default"]) {
        Role::EmbeddingB(module)
    } else if name.ends_with(".base_layer.weight") {
        Role::OfBase
    } else {
        Role::Other(name)
    }
}

/// The tensors of the output, in the order in which the adapter has their modules.
fn tensors(
    adapter: &AdapterConfig,
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
) -> Result<Vec<Tensor>, Error> {
    let mut modules: Vec<(&str, Found)> = Vec::new();
    let mut tensors = Vec::new();
    for entry in &checkpoint.entries {
        let (module, is_embedding, is_a) = match role(&entry.name) {
            Role::OfBase => continue,
            Role::A(module) => (module, false, true),
            Role::B(module) => (module, false, false),
            Role::EmbeddingA(module) => (module, true, true),
            Role::EmbeddingB(module) => (module, true, false),
            Role::Other(name) => {
                tensors.push(replaced(config, converter, checkpoint, entry, name)?);
                continue;
            }
        };
        let found = match modules.iter_mut().find(|(known, _)| *known == module) {
            Some((_, found)) => found,
            None => &mut modules.push_mut((module, Found { is_embedding, ..Found::default() })).1,
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
            Mapping::Made(made) | Mapping::Behind(_, made) => made,
            Mapping::Dropped | Mapping::DroppedIfZero | Mapping::Shared(_) | Mapping::Unknown => {
                let what = format!("is for no tensor of a {} model", converter.architecture());
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
            // The base matrix is stored transposed, and so would be its update.
            if adapter.transposed {
                pair = transposed(pair).map_err(unfit)?;
            }
            for step in steps {
                pair = stepped(pair, step).map_err(unfit)?;
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
                let what = format!("is for a part of `{name}`, to which no adapter of a GGUF adds");
                return Err(fault(what));
            }
            let position = experts.iter().position(|(known, _)| *known == name);
            let position = position.unwrap_or_else(|| {
                experts.push((name.clone(), vec![None; count as usize]));
                experts.len() - 1
            });
            let parts = &mut experts[position].1;
            let slot = parts.get_mut(index as usize);
            *slot.ok_or_else(|| fault(format!("is beyond the {count} experts of the base")))? =
                Some(pair);
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

/// The pair whose product is the transposed product: `(B A)' = A' B'`.
fn transposed([a, b]: [Tensor; 2]) -> Result<[Tensor; 2], TensorMismatch> {
    Ok([b.changed(Step::Transpose)?, a.changed(Step::Transpose)?])
}

/// The pair whose product is the product after `step`.
fn stepped(pair: [Tensor; 2], step: Step) -> Result<[Tensor; 2], TensorMismatch> {
    match step {
        Step::Transpose => transposed(pair),
        // The rows of the product are those of the second matrix.
        Step::InterleaveHalves { .. }
        | Step::Regroup { .. }
        | Step::Exchange { .. }
        | Step::Pick { .. } => {
            let [a, b] = pair;
            Ok([a, b.changed(step)?])
        }
        // Its columns are those of the first.
        Step::ExchangeColumns { .. } => {
            let [a, b] = pair;
            Ok([a.changed(step)?, b])
        }
        Step::Map(Function::Times(_)) => {
            let [a, b] = pair;
            Ok([a, b.changed(step)?])
        }
        other => Err(format!("cannot follow what happens to the base tensor ({other:?})").into()),
    }
}

/// A norm that takes the place of the base's.
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
        let help = "merge it into its model with `peft`";
        return refuse("adapter-unsupported", "is of a DoRA adapter", help);
    }
    let Mapping::Made(made) = converter.mapping(config, name)? else {
        return refuse("adapter-other-base", "is no part of an adapter", OTHER_BASE);
    };
    let ([MappedTensor { name, steps, slot: None }], 1) = (&made[..], entry.shape.len()) else {
        let help = "the adapter trained whole tensors, such as the embedding of new tokens: merge \
                    it into its model with `peft` and convert the result";
        return refuse("adapter-unsupported", "is a whole matrix, not a pair", help);
    };
    let tensor = Tensor { name: name.clone(), ..assembly::unmodified(checkpoint, entry)? };
    steps.iter().copied().try_fold(tensor, Tensor::changed).map_err(|what| {
        let what = format!("tensor `{name}` {what}");
        Error::input("adapter-other-base", &checkpoint.path_of(entry), what, OTHER_BASE)
    })
}

/// The type of all matrices: F32 where nothing is asked for, as for llama.cpp's converter, unless
/// the adapter itself is stored in 16 bits.
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
            let what = format!("an adapter cannot be {other}");
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
            root_of_rank: config["use_rslora"] == true,
            transposed: false,
            root: config,
        };
        config.correction(module, rank)
    }

    #[test]
    fn other_scales_than_alpha_by_rank_go_into_the_second_matrix() {
        let q = "model.layers.0.self_attn.q_proj";
        assert_eq!(correction(json!({"lora_alpha": 8}), q, 4), 1.0);
        // 8 / sqrt(4) instead of 8 / 4.
        assert_eq!(correction(json!({"lora_alpha": 8, "use_rslora": true}), q, 4), 2.0);
        let pattern = json!({"q_proj": 16, "layers.0.self_attn.q_proj": 4, "proj": 99});
        assert_eq!(correction(json!({"lora_alpha": 8, "alpha_pattern": pattern}), q, 4), 0.5);
    }

    #[test]
    fn names_tell_what_a_tensor_is() {
        let module = "base_model.model.model.layers.0.mlp.up_proj";
        let is_a = |name: &str| matches!(role(name), Role::A("model.layers.0.mlp.up_proj"));
        assert!(is_a(&format!("{module}.lora_A.weight")));
        assert!(is_a(&format!("{module}.lora_A.default.weight")));
        assert!(matches!(role(&format!("{module}.base_layer.weight")), Role::OfBase));
        assert!(matches!(role("model.embed_tokens.lora_embedding_B"), Role::EmbeddingB(_)));
        assert!(matches!(role(&format!("{module}.lora_magnitude_vector")), Role::Other(_)));
    }
}
