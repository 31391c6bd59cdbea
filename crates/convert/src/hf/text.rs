//! Conversion of the text model of a checkpoint.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gguf::{ByteOrder, Error, Metadata, ModelName, NameKind, ParameterCount, TensorType};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry, json};
use gguf_models::convert::assembly::{Assembly, misfit, refuse_unknown};
use gguf_models::convert::target::Target;
use gguf_models::convert::{
    Converter, MappedTensor, Mapping, Values, VocabularyKind, assembly, configuration, foreign,
    rope_check,
};
use gguf_models::schema::Presence;
use gguf_models::{convert as converters, registry};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::float_type;
use gguf_quantize::recipe::{Preset, Target as Recipe};

use super::contradictions::StatedFlags;
use super::{Conversion, HfOptions};
use crate::model_card::GeneralMetadata;
use crate::vocab;

const CHAT_TEMPLATE: &str = "tokenizer.chat_template";

/// Plans the conversion of the text model of the checkpoint in `dir`, whose tensors are those of `checkpoint`.
///
/// Reads configuration, tokenizer and model card, and no tensor data.
///
/// # Errors
/// If a file is missing or invalid, if the class is unknown, or if the tensors are not those of the model that the
/// configuration describes.
pub(super) fn plan(
    dir: &Path,
    checkpoint: &Checkpoint,
    options: &HfOptions,
) -> Result<Conversion, Error> {
    let mut config = match registry::inferred_config(dir, checkpoint)? {
        Some(config) => config,
        None => Config::read(dir)?,
    };
    let converter = find_converter(&mut config, checkpoint, options)?;
    let mut notes = configuration::check(&config)?;
    let flags = StatedFlags::of(&config);
    converter.complete_config(&mut config)?;
    let converter = converter.of_model(&config);
    let drafted = Target::of(&mut config, converter, dir, options.target_model_dir.as_deref())?;
    converter.infer_from_tensors(
        &mut config,
        checkpoint.entries.iter().map(|entry| entry.name.as_str()),
    );
    if !options.vocab_only {
        converter.infer_from_values(&mut config, &Values::of(checkpoint))?;
    }
    let mut tensors = match options.vocab_only {
        true => Vec::new(),
        false => tensors(&config, converter, checkpoint, &mut notes)?,
    };
    notes.extend(flags.contradictions(converter, &tensors));
    tie_output(&config, converter, &mut tensors);
    follow_embedding(&mut config, &tensors, &mut notes)?;

    let matrices = matrix_type(&tensors);
    let target = match options.outtype {
        Some(target) => target,
        None if converter.keeps_types() => Recipe::Preset(Preset::MXFP4_MOE),
        None => Recipe::Type(most_common_quantized_type(&tensors).unwrap_or(matrices)),
    };
    let file_type = target.file_type().ok_or_else(|| {
        let help = "choose one of the types that `gguf convert --help` lists";
        Error::request("target-file-type", format!("{target} has no file type"), help)
    })?;

    let general = GeneralMetadata::load(
        dir,
        Some(config.json()),
        &ParameterCount::from_tensors(tensors.iter().map(|t| (t.name.as_str(), &t.shape[..]))),
        options.metadata.as_deref(),
        options.model_name.as_deref(),
    )?;
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", converter.architecture());
    if converter.chat_template_first() {
        // Reserves the position of the key.
        metadata.set(CHAT_TEMPLATE, "");
    }
    converter.leading_metadata(&config, &mut metadata)?;
    metadata.set("general.type", "model");
    general.write_to(&mut metadata);
    converter.metadata(&config, file_type.number(), &mut metadata)?;
    notes.extend(rope_check::check(
        &config,
        converter,
        &metadata,
        &converter.computed_tensors(&config)?,
    )?);
    metadata.set("general.quantization_version", gguf::QUANTIZATION_VERSION);
    let own = (converter.vocabulary(), converter.pre_tokenizers());
    let (kind, hints) = drafted.as_ref().map_or(own, |target| target.vocabulary(converter));
    let vocabulary = vocab::load(
        drafted.as_ref().map_or(dir, Target::dir),
        kind,
        &vocab::VocabularyOptions {
            pre: options.pre.as_deref(),
            hints,
            vocab_size: config.u32(&["vocab_size"])?.map(u64::from),
            architecture: Some(converter.architecture()),
        },
    )?;
    vocab::require_pre(options.pre.as_deref(), &vocabulary.metadata)?;
    notes.extend(checkpoint.notes.iter().cloned());
    notes.extend(vocabulary.notes);
    if vocabulary.metadata.get(CHAT_TEMPLATE).is_none() {
        metadata.remove(CHAT_TEMPLATE);
    }
    for (key, value) in vocabulary.metadata.iter() {
        // Some models have one of these keys among their hyper-parameters.
        metadata.set(key.to_owned(), value.clone());
    }
    converter.trailing_metadata(&config, &mut metadata)?;

    let mut job = Job { metadata, items: Vec::new(), check_finite: true, order: ByteOrder::Little };
    if options.vocab_only {
        let name = ModelName::from_metadata(&job.metadata, None);
        let file_name = ModelName { kind: Some(NameKind::Vocab), ..name }.to_string();
        gguf_quantize::set_overrides(&mut job.metadata, &options.quantization);
        return Ok(Conversion { job, file_name, notes });
    }
    let file_name = ModelName::from_metadata(&job.metadata, Some(file_type.name())).to_string();
    let float = |tensor: &Tensor, matrices| match tensor.stored_type {
        whole @ (TensorType::I32 | TensorType::I64) => whole,
        _ if converter.keeps_f32(&config, &tensor.name) => TensorType::F32,
        _ => float_type(&tensor.name, &tensor.shape, matrices),
    };
    match options.outtype {
        None if converter.keeps_types() => {
            let fp8 = fp8_tensors(&config, converter, checkpoint)?;
            job.items = as_stored(tensors, |tensor| match stored_type(tensor, &fp8) {
                Some(own) => own,
                None => float(tensor, matrices),
            });
        }
        None => job.items = as_stored(tensors, |tensor| float(tensor, matrices)),
        Some(target) => {
            let quantization = &options.quantization;
            let matrices = float_target(target).unwrap_or(matrices);
            let float = |tensor: &Tensor| float(tensor, matrices);
            notes.extend(choose_types(&mut job, tensors, target, float, quantization)?);
        }
    }
    gguf_quantize::set_overrides(&mut job.metadata, &options.quantization);
    require_tensors(dir, &job)?;
    check_architecture(&config, &job)?;
    Ok(Conversion { job, file_name, notes })
}

/// Reads the vocabulary in `dir` as a conversion writes it, with `general.architecture`, on which its meaning can
/// depend. Without a `config.json` of a known class, the tokenizer files determine the kind.
///
/// # Errors
/// As [`vocab::load`], and if `config.json` is invalid.
pub fn vocabulary(dir: &Path) -> Result<vocab::Vocabulary, Error> {
    if Config::file_in(dir).is_some() {
        let mut config = Config::read(dir)?;
        let native = registry::consolidated_converter(&config)?;
        if let Some(converter) = native.or_else(|| config.class().ok().and_then(converters::find)) {
            converter.complete_config(&mut config)?;
            let converter = converter.of_model(&config);
            let options = vocab::VocabularyOptions {
                pre: None,
                hints: converter.pre_tokenizers(),
                vocab_size: config.u32(&["vocab_size"])?.map(u64::from),
                architecture: None,
            };
            let mut vocabulary = vocab::load(dir, converter.vocabulary(), &options)?;
            vocabulary.metadata.set("general.architecture", converter.architecture());
            return Ok(vocabulary);
        }
    }
    let tokenizer = json::read_optional(&dir.join("tokenizer.json"))?.unwrap_or_default();
    vocab::load(dir, kind_of(&tokenizer), &vocab::VocabularyOptions::default())
}

/// Reads the vocabulary of a `tokenizer.json` of any name, without the other files of its checkpoint.
///
/// # Errors
/// As [`vocab::load`].
pub fn vocabulary_of_json(path: &Path) -> Result<vocab::Vocabulary, Error> {
    let bytes = std::fs::read(path).map_err(|fault| Error::read(path, fault))?;
    let kind = kind_of(&json::parse(path, &bytes)?);
    let folder = vocab::Folder::Memory([("tokenizer.json", &bytes[..])].into());
    vocab::load_from(folder, kind, &vocab::VocabularyOptions::default())
        .map_err(|error| error.in_file(path))
}

/// Returns the kind of vocabulary of a `tokenizer.json` whose model is not known.
fn kind_of(tokenizer: &serde_json::Value) -> VocabularyKind {
    match tokenizer["model"]["type"].as_str() {
        Some("WordPiece" | "Unigram") => VocabularyKind::Encoder,
        _ => VocabularyKind::Llama,
    }
}

/// Returns the converter of the model, and sets the class in the configuration if the options have one.
pub(crate) fn find_converter(
    config: &mut Config,
    checkpoint: &Checkpoint,
    options: &HfOptions,
) -> Result<&'static dyn Converter, Error> {
    if let Some(like) = &options.like {
        let class = converters::class_like(like).ok_or_else(|| {
            let what = format!("`{like}` is not a known class or architecture");
            let help = format!("known classes are {}", converters::classes().join(", "));
            Error::request("class-unknown", what, help)
        })?;
        config.set_class(class);
    }
    if let Some(converter) = registry::consolidated_converter(config)? {
        return Ok(converter);
    }
    let class = config.class()?;
    converters::find(class).ok_or_else(|| {
        if let Some(body) = converters::class_with_body(class) {
            let what = format!("the class `{class}` has a head that GGUF does not support");
            let help = format!("save the model in `transformers` as `{body}`, then convert it");
            return Error::input("checkpoint-misfit", config.path(), what, help);
        }
        if gguf_models::mmproj::find(class).is_some() {
            let what = format!("the class `{class}` has no known text model");
            let help = "`--mmproj` converts the vision or audio encoder; the text model may have its own checkpoint";
            return Error::input("class-unknown", config.path(), what, help);
        }
        let names = checkpoint.entries.iter().map(|entry| entry.name.as_str());
        let help = match &converters::classes_with_tensors(config, names)[..] {
            [] => format!("known classes are {}", converters::classes().join(", ")),
            [only] => format!(
                "its tensors have the names of {only}; if it computes the same, convert with `--like {only}`"
            ),
            [first, others @ ..] => format!(
                "its tensors have the names of {first}; if it computes the same, convert with `--like {first}`. {}",
                others_alike(others)
            ),
        };
        Error::input(
            "class-unknown",
            config.path(),
            format!("the class `{class}` is not known"),
            help,
        )
    })
}

/// Names some of the other classes with tensors of the same names.
fn others_alike(classes: &[&str]) -> String {
    const SHOWN: usize = 3;
    let names = classes[..classes.len().min(SHOWN)].join(", ");
    match classes.len().saturating_sub(SHOWN) {
        0 => format!("So have those of {names}"),
        more => format!("So have those of {names} and {more} other classes"),
    }
}

/// Copies the token embedding to the output projection if the embeddings are tied and the architecture requires
/// an output projection.
fn tie_output(config: &Config, converter: &'static dyn Converter, tensors: &mut Vec<Tensor>) {
    const OUTPUT: &str = "output.weight";
    let is_tied = matches!(config.bool("tie_word_embeddings"), Ok(Some(true)));
    let schema = gguf_models::schema::architecture(converter.architecture());
    let is_needed = schema.is_some_and(|schema| {
        schema
            .tensor_names()
            .any(|(name, presence)| name == OUTPUT && presence == Presence::Required)
    });
    if !is_tied || !is_needed || tensors.iter().any(|tensor| tensor.name == OUTPUT) {
        return;
    }
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    tensors.extend(embedding.cloned().map(|tensor| Tensor { name: OUTPUT.to_owned(), ..tensor }));
}

/// Sets `vocab_size` to the number of rows of the token embedding.
fn follow_embedding(
    config: &mut Config,
    tensors: &[Tensor],
    notes: &mut Vec<String>,
) -> Result<(), Error> {
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    let Some(rows) = embedding.and_then(|tensor| tensor.shape.get(1).copied()) else {
        return Ok(());
    };
    if let Some(stated) = config.u32(&["vocab_size"])?.filter(|&size| u64::from(size) != rows) {
        notes.push(format!(
            "`vocab_size` is {stated} in config.json, but the embedding has {rows} rows: wrote {rows} tokens"
        ));
        config.set("vocab_size", rows);
    }
    Ok(())
}

/// Returns the tensors of the output, in the order in which the checkpoint's tensors complete them.
pub(crate) fn tensors(
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
    notes: &mut Vec<String>,
) -> Result<Vec<Tensor>, Error> {
    let computed = converter.computed_tensors(config)?.into_iter();
    let computed = computed.map(|(name, values)| assembly::computed(name, values)).collect();
    let mut assembly =
        Assembly::new(checkpoint, computed).rows_of_parts(converter.row_stacked_suffixes());
    let mut unknown = Vec::new();
    let mut other_modalities = 0;
    for entry in &checkpoint.entries {
        let name = foreign::text_name(&entry.name);
        if let Some(tensor) = converter.combine_tensor(config, checkpoint, &name)? {
            assembly.push(tensor);
            continue;
        }
        let made = match converter.mapping(config, &name)? {
            Mapping::Tensors(made) => made,
            Mapping::WithVectors(vectors, made) => {
                for (name, values) in vectors {
                    assembly.push(assembly::computed(name, values));
                }
                made
            }
            Mapping::Shared(name) if assembly.has(name) => continue,
            Mapping::Shared(name) => {
                vec![MappedTensor { name: name.to_owned(), steps: vec![], slot: None }]
            }
            Mapping::Dropped => continue,
            Mapping::DroppedIfZero => {
                require_zeros(checkpoint, entry)?;
                continue;
            }
            Mapping::Unknown if foreign::is_buffer(&name) => continue,
            Mapping::Unknown if foreign::is_other_modality(&entry.name) => {
                other_modalities += 1;
                continue;
            }
            Mapping::Unknown if name.contains('/') => {
                notes.push(format!(
                    "skipped `{name}`: the architecture {} has no modules behind the pooling",
                    converter.architecture()
                ));
                continue;
            }
            Mapping::Unknown => {
                unknown.push(entry);
                continue;
            }
        };
        assembly.add(entry, assembly::shape(checkpoint, entry)?, made)?;
    }
    refuse_unknown(&unknown, converter.architecture(), checkpoint)?;
    if other_modalities > 0 {
        notes.push(format!(
            "skipped {other_modalities} vision and audio tensors: the output is the text model"
        ));
    }
    let mut tensors = assembly.finish(config)?;
    converter.order_tensors(&mut tensors);
    if let Some(list) = converter.list_tensor()
        && let Some(numbers) = config.json().get(list).and_then(|numbers| numbers.as_array())
    {
        let numbers: Vec<i64> = numbers.iter().filter_map(|number| number.as_i64()).collect();
        tensors.push(assembly::integer_list(list, &numbers));
    }
    Ok(tensors)
}

/// Fails if a tensor that runtimes do not support is not zero.
fn require_zeros(checkpoint: &Checkpoint, entry: &Entry) -> Result<(), Error> {
    let tensor = assembly::unmodified(checkpoint, entry)?;
    let mut bytes = Vec::new();
    for row in 0..tensor.rows() {
        tensor.read_rows(row, 1, &mut bytes)?;
        // Zero has no bit set except the sign.
        let size = tensor.bytes_of(1).max(1) as usize;
        let is_zero = |x: &[u8]| {
            x.split_last()
                .is_some_and(|(top, rest)| top & 0x7F == 0 && rest.iter().all(|&byte| byte == 0))
        };
        if !bytes.chunks_exact(size).all(is_zero) {
            let what = format!("tensor `{}` is not zero, and no runtime supports it", entry.name);
            let help = "the model has no lossless conversion";
            return Err(Error::input(
                "checkpoint-tensor-lost",
                &checkpoint.path_of(entry),
                what,
                help,
            ));
        }
    }
    Ok(())
}

/// Fails if the job has no tensors.
pub(crate) fn require_tensors(path: &Path, job: &Job) -> Result<(), Error> {
    if !job.items.is_empty() {
        return Ok(());
    }
    let help = "the download may be incomplete: download the weights again";
    Err(Error::input("checkpoint-weights-missing", path, "contains no model weights", help))
}

/// Fails if names or shapes of the tensors do not match the architecture, its hyper-parameters and the vocabulary.
fn check_architecture(config: &Config, job: &Job) -> Result<(), Error> {
    const CODES: [&str; 5] =
        ["tensor-missing", "tensor-unexpected", "tensor-shape", "layer-count", "vocab-rows"];
    let findings = gguf_check::check_raw_header(&job.header()?.into_raw());
    match findings.iter().find(|finding| CODES.contains(&finding.code)) {
        Some(finding) => {
            let what = format!("does not match the tensors of the checkpoint: {finding}");
            Err(misfit(config.path(), what))
        }
        None => Ok(()),
    }
}

/// Returns the 16-bit type of the first matrix that has one; F16 if none has.
pub(crate) fn matrix_type(tensors: &[Tensor]) -> TensorType {
    let is_half = |ty: &TensorType| matches!(*ty, TensorType::F16 | TensorType::BF16);
    tensors
        .iter()
        .filter(|tensor| tensor.shape.len() > 1)
        .map(|tensor| tensor.stored_type)
        .find(is_half)
        .unwrap_or(TensorType::F16)
}

/// Returns the quantized type of most elements; `None` if the checkpoint has only float tensors.
fn most_common_quantized_type(tensors: &[Tensor]) -> Option<TensorType> {
    let mut elements: BTreeMap<TensorType, u64> = BTreeMap::new();
    for tensor in tensors.iter().filter(|tensor| tensor.stored_type.is_quantized()) {
        *elements.entry(tensor.stored_type).or_default() += tensor.shape.elements().unwrap_or(0);
    }
    elements.into_iter().max_by_key(|(_, elements)| *elements).map(|(ty, _)| ty)
}

/// Returns the output type of a tensor that keeps its type; `None` if the name or the other matrices determine it.
fn stored_type(tensor: &Tensor, fp8: &BTreeSet<String>) -> Option<TensorType> {
    const BLOCKS: TensorType = TensorType::Q8_0;
    if tensor.shape.len() < 2 || tensor.name.ends_with("_norm.weight") {
        return None;
    }
    match tensor.stored_type {
        TensorType::F32 if fp8.contains(&tensor.name) => {
            // Rows may not divide into blocks.
            let fits = BLOCKS.byte_len(&tensor.shape).is_some();
            Some(if fits { BLOCKS } else { TensorType::F16 })
        }
        own @ (TensorType::F32 | TensorType::BF16) => Some(own),
        _ => None,
    }
}

/// Returns the names of the tensors that are stored as FP8.
fn fp8_tensors(
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for entry in checkpoint.entries.iter().filter(|entry| entry.is_fp8) {
        if let Mapping::Tensors(made) =
            converter.mapping(config, &foreign::text_name(&entry.name))?
        {
            names.extend(made.into_iter().map(|made| made.name));
        }
    }
    Ok(names)
}

/// Keeps the types of quantized tensors, and gives float tensors these types.
fn as_stored(tensors: Vec<Tensor>, float: impl Fn(&Tensor) -> TensorType) -> Vec<Item> {
    let item = |tensor: Tensor| {
        let target = match tensor.stored_type {
            blocks if blocks.is_quantized() => blocks,
            _ => float(&tensor),
        };
        Item::new(tensor, target)
    };
    tensors.into_iter().map(item).collect()
}

/// Returns the float type of an unquantized output; `None` for other targets.
fn float_target(target: Recipe) -> Option<TensorType> {
    match target {
        Recipe::Preset(Preset::F32) | Recipe::Type(TensorType::F32) => Some(TensorType::F32),
        Recipe::Preset(Preset::F16) | Recipe::Type(TensorType::F16) => Some(TensorType::F16),
        Recipe::Preset(Preset::BF16) | Recipe::Type(TensorType::BF16) => Some(TensorType::BF16),
        _ => None,
    }
}

/// Assigns the type of every tensor: first a float type, then the type of the recipe. Returns notes for the user.
fn choose_types(
    job: &mut Job,
    tensors: Vec<Tensor>,
    target: Recipe,
    float: impl Fn(&Tensor) -> TensorType,
    options: &gguf_quantize::QuantizeOptions,
) -> Result<Vec<String>, Error> {
    let types: Vec<_> = tensors.iter().map(float).collect();
    job.items =
        tensors.into_iter().zip(&types).map(|(tensor, ty)| Item::new(tensor, *ty)).collect();
    if float_target(target).is_some() {
        return Ok(Vec::new());
    }
    gguf_quantize::assign_types(job, target, options)
}
