//! Conversion of the text model of a checkpoint.

use gguf_models::convert::VocabularyKind;
use gguf_models::registry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use gguf::{ByteOrder, Error, Metadata, ModelName, NameKind, ParameterCount, TensorType};
use gguf_checkpoint::config::Config;
use gguf_checkpoint::{Checkpoint, Entry, json};
use gguf_models::schema::Need;
use gguf_pipeline::{Item, Job, Tensor};
use gguf_quantize::float_type;
use gguf_quantize::recipe::{Preset, Target as Recipe};

use super::{Conversion, Options};
use crate::general::General;
use crate::vocab;
use gguf_models::convert::assembly::{self, Assembly, CONFIG_OF_ANOTHER, refuse_unknown};
use gguf_models::convert::target::Target;
use gguf_models::convert::{self as converters, Converter, MappedTensor, Mapping, Values, foreign};

const CHAT_TEMPLATE: &str = "tokenizer.chat_template";

/// Plans the conversion of the checkpoint in `dir`, whose tensors are `checkpoint`'s.
///
/// Reads configuration, tokenizer and model card, and no tensor data.
///
/// # Errors
/// If a file is missing or wrong, if the class is not known, or if the tensors do not make up the
/// model that the configuration describes.
pub(super) fn plan(
    dir: &Path,
    checkpoint: &Checkpoint,
    options: &Options,
) -> Result<Conversion, Error> {
    let mut config = match registry::inferred_config(dir, checkpoint)? {
        Some(config) => config,
        None => Config::read(dir)?,
    };
    let converter = find_converter(&mut config, checkpoint, options)?;
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
    let mut notes = Vec::new();
    let mut tensors = match options.vocab_only {
        true => Vec::new(),
        false => tensors(&config, converter, checkpoint, &mut notes)?,
    };
    tie_output(&config, converter, &mut tensors);
    follow_embedding(&mut config, &tensors, &mut notes)?;

    let matrices = matrix_type(&tensors);
    let target = match options.outtype {
        Some(target) => target,
        None if converter.keeps_types() => Recipe::Preset(Preset::MXFP4_MOE),
        None => Recipe::Type(kept_type(&tensors).unwrap_or(matrices)),
    };
    let file_type = target.file_type().ok_or_else(|| {
        let help = "ask for one of the mixes that `gguf convert --help` lists";
        Error::request("target-file-type", format!("{target} names no file type"), help)
    })?;

    let general = General::load(
        dir,
        Some(config.json()),
        &ParameterCount::from_tensors(tensors.iter().map(|t| (t.name.as_str(), &t.shape[..]))),
        options.metadata.as_deref(),
        options.model_name.as_deref(),
    )?;
    let mut metadata = Metadata::new();
    metadata.set("general.architecture", converter.architecture());
    if converter.chat_template_first() {
        // Its place, until it is known.
        metadata.set(CHAT_TEMPLATE, "");
    }
    converter.leading_metadata(&config, &mut metadata)?;
    metadata.set("general.type", "model");
    general.write_to(&mut metadata);
    converter.metadata(&config, file_type.number(), &mut metadata)?;
    metadata.set("general.quantization_version", gguf::QUANTIZATION_VERSION);
    let own = (converter.vocabulary(), converter.pre_tokenizers());
    let (kind, hints) = drafted.as_ref().map_or(own, |target| target.vocabulary(converter));
    let vocabulary = vocab::load(
        drafted.as_ref().map_or(dir, Target::dir),
        kind,
        &vocab::Options {
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
        // Some families state one of these among their hyper-parameters.
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
            job.items = as_stored(tensors, |tensor| match own_type(tensor, &fp8) {
                Some(own) => own,
                None => float(tensor, matrices),
            });
        }
        None => job.items = as_stored(tensors, |tensor| float(tensor, matrices)),
        Some(target) => {
            let quantization = &options.quantization;
            let matrices = plain(target).unwrap_or(matrices);
            let float = |tensor: &Tensor| float(tensor, matrices);
            notes.extend(choose_types(&mut job, tensors, target, float, quantization)?);
        }
    }
    gguf_quantize::set_overrides(&mut job.metadata, &options.quantization);
    require_tensors(dir, &job)?;
    check_architecture(&config, &job)?;
    Ok(Conversion { job, file_name, notes })
}

/// The vocabulary in `dir`, as the conversion of its model would write it, with the
/// `general.architecture` on which its meaning can depend; without a `config.json` of a known class,
/// as the tokenizer's own files tell.
///
/// # Errors
/// As [`vocab::load`], and if `config.json` is broken.
pub fn vocabulary(dir: &Path) -> Result<vocab::Vocabulary, Error> {
    if Config::file_in(dir).is_some() {
        let mut config = Config::read(dir)?;
        let native = registry::consolidated_converter(&config)?;
        if let Some(converter) = native.or_else(|| config.class().ok().and_then(converters::find)) {
            converter.complete_config(&mut config)?;
            let converter = converter.of_model(&config);
            let options = vocab::Options {
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
    let kind = match tokenizer["model"]["type"].as_str() {
        Some("WordPiece" | "Unigram") => VocabularyKind::Encoder,
        _ => VocabularyKind::Llama,
    };
    vocab::load(dir, kind, &vocab::Options::default())
}

/// Returns the converter of the model. Afterwards the configuration states a class of it.
pub(crate) fn find_converter(
    config: &mut Config,
    checkpoint: &Checkpoint,
    options: &Options,
) -> Result<&'static dyn Converter, Error> {
    if let Some(like) = &options.like {
        let class = converters::class_like(like).ok_or_else(|| {
            let what = format!("`{like}` is no known class or architecture");
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
            let what = format!("the class `{class}` has a head that no GGUF holds");
            let help = format!("save the model in `transformers` as `{body}`, and convert that");
            return Error::input("checkpoint-misfit", config.path(), what, help);
        }
        if gguf_models::mmproj::find(class).is_some() {
            let what = format!("of the class `{class}` no text model is known");
            let help = "`--mmproj` converts what sees or hears; the text model may have a checkpoint of its own";
            return Error::input("class-unknown", config.path(), what, help);
        }
        let names = checkpoint.entries.iter().map(|entry| entry.name.as_str());
        let help = match &converters::classes_with_tensors(config, names)[..] {
            [] => format!("known classes are {}", converters::classes().join(", ")),
            alike => format!(
                "its tensors have the names of {0}; if it computes the same, convert with \
                 `--like {1}`",
                alike.join(", "),
                alike[0]
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

/// Some architectures have no output matrix that is the embedding: then the embedding is written
/// twice.
fn tie_output(config: &Config, converter: &'static dyn Converter, tensors: &mut Vec<Tensor>) {
    const OUTPUT: &str = "output.weight";
    let is_tied = matches!(config.bool("tie_word_embeddings"), Ok(Some(true)));
    let schema = gguf_models::schema::architecture(converter.architecture());
    let is_needed = schema.is_some_and(|schema| {
        schema.tensor_names().any(|(name, need)| name == OUTPUT && need == Need::Required)
    });
    if !is_tied || !is_needed || tensors.iter().any(|tensor| tensor.name == OUTPUT) {
        return;
    }
    let embedding = tensors.iter().find(|tensor| tensor.name == "token_embd.weight");
    tensors.extend(embedding.cloned().map(|tensor| Tensor { name: OUTPUT.to_owned(), ..tensor }));
}

/// The rows of the embedding are what a vocabulary can have: a configuration that says otherwise
/// is corrected.
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
            "config.json states a vocabulary of {stated}, the embedding has {rows} rows, which \
             are kept"
        ));
        config.set("vocab_size", rows);
    }
    Ok(())
}

/// The tensors of the output, in the order in which the checkpoint completes them.
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
            Mapping::Made(made) => made,
            Mapping::Behind(vectors, made) => {
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
                    "left out `{name}`: {} files have no place for what stands behind the pooling",
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
            "left out {other_modalities} tensors that see or hear: this is the text model only"
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

/// A tensor that programs have no place for can only be left out if it does nothing.
fn require_zeros(checkpoint: &Checkpoint, entry: &Entry) -> Result<(), Error> {
    let tensor = assembly::unmodified(checkpoint, entry)?;
    let mut bytes = Vec::new();
    for row in 0..tensor.rows() {
        tensor.read_rows(row, 1, &mut bytes)?;
        // Zero has no bits, or the sign alone.
        let size = tensor.bytes_of(1).max(1) as usize;
        let is_zero = |x: &[u8]| {
            x.split_last()
                .is_some_and(|(top, rest)| top & 0x7F == 0 && rest.iter().all(|&byte| byte == 0))
        };
        if !bytes.chunks_exact(size).all(is_zero) {
            let what =
                format!("tensor `{}` is not zero, and programs have no place for it", entry.name);
            let help = "the model cannot be converted without a loss";
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

/// Without a tensor there is no model.
pub(crate) fn require_tensors(path: &Path, job: &Job) -> Result<(), Error> {
    if !job.items.is_empty() {
        return Ok(());
    }
    let help = "the weights may not be downloaded yet: fetch them again";
    Err(Error::input("checkpoint-weights-missing", path, "has no weights for a model", help))
}

/// The tensors are those of the architecture, in its shapes, for these hyper-parameters and this
/// vocabulary.
fn check_architecture(config: &Config, job: &Job) -> Result<(), Error> {
    const CODES: [&str; 5] =
        ["tensor-missing", "tensor-unexpected", "tensor-shape", "layer-count", "vocab-rows"];
    let findings = gguf_check::check_raw_header(&job.header()?.into_raw());
    match findings.iter().find(|finding| CODES.contains(&finding.code)) {
        Some(finding) => {
            let what = format!("does not describe the tensors of the checkpoint: {finding}");
            Err(Error::input("checkpoint-misfit", config.path(), what, CONFIG_OF_ANOTHER))
        }
        None => Ok(()),
    }
}

/// The 16-bit type of the first matrix that has one; F16 if none does.
pub(crate) fn matrix_type(tensors: &[Tensor]) -> TensorType {
    let is_half = |ty: &TensorType| matches!(*ty, TensorType::F16 | TensorType::BF16);
    tensors
        .iter()
        .filter(|tensor| tensor.shape.len() > 1)
        .map(|tensor| tensor.stored_type)
        .find(is_half)
        .unwrap_or(TensorType::F16)
}

/// The block type of most weights among those that the checkpoint has in one; `None` if it has
/// floats only.
fn kept_type(tensors: &[Tensor]) -> Option<TensorType> {
    let mut elements: BTreeMap<TensorType, u64> = BTreeMap::new();
    for tensor in tensors.iter().filter(|tensor| tensor.stored_type.is_quantized()) {
        *elements.entry(tensor.stored_type).or_default() += tensor.shape.elements().unwrap_or(0);
    }
    elements.into_iter().max_by_key(|(_, elements)| *elements).map(|(ty, _)| ty)
}

/// The type of floats that a tensor keeps; `None` if it depends on others, or on its name.
fn own_type(tensor: &Tensor, fp8: &BTreeSet<String>) -> Option<TensorType> {
    const BLOCKS: TensorType = TensorType::Q8_0;
    if tensor.shape.len() < 2 || tensor.name.ends_with("_norm.weight") {
        return None;
    }
    match tensor.stored_type {
        TensorType::F32 if fp8.contains(&tensor.name) => {
            // Rows that are not whole blocks.
            let fits = BLOCKS.byte_len(&tensor.shape).is_some();
            Some(if fits { BLOCKS } else { TensorType::F16 })
        }
        own @ (TensorType::F32 | TensorType::BF16) => Some(own),
        _ => None,
    }
}

/// The names of tensors that are made of floats of eight bits.
fn fp8_tensors(
    config: &Config,
    converter: &'static dyn Converter,
    checkpoint: &Checkpoint,
) -> Result<BTreeSet<String>, Error> {
    let mut names = BTreeSet::new();
    for entry in checkpoint.entries.iter().filter(|entry| entry.is_fp8) {
        if let Mapping::Made(made) = converter.mapping(config, &foreign::text_name(&entry.name))? {
            names.extend(made.into_iter().map(|made| made.name));
        }
    }
    Ok(names)
}

/// Blocks as they are, all else as floats of these types.
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

/// The type of matrices in a file of plain floats; `None` for other targets.
fn plain(target: Recipe) -> Option<TensorType> {
    match target {
        Recipe::Preset(Preset::F32) | Recipe::Type(TensorType::F32) => Some(TensorType::F32),
        Recipe::Preset(Preset::F16) | Recipe::Type(TensorType::F16) => Some(TensorType::F16),
        Recipe::Preset(Preset::BF16) | Recipe::Type(TensorType::BF16) => Some(TensorType::BF16),
        _ => None,
    }
}

/// Gives every tensor its type: first as floats, then as the recipe wants it. Returns what the user
/// should know.
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
    if plain(target).is_some() {
        return Ok(Vec::new());
    }
    gguf_quantize::assign_types(job, target, options)
}
