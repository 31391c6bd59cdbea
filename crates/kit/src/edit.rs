//! Edits of metadata and tensors, in place if possible or in a new file.

use std::path::{Path, PathBuf};

use gguf::{Finding, Metadata, RawHeader, Severity, Value};
use gguf_check::key_value::KeyValue;
use gguf_graph::stored;
use gguf_models::{schema, token};
use gguf_pipeline::{Item, Job, Tensor};
use gguf_store::edit::{
    EditLock, EditOutcome, EditPreview, RESERVE_KEY, edit_header, preview_header, reserve,
};
use gguf_store::{Existing, Model, Overwrite, Progress, ShardSet};
use gguf_tokenizer::template::{self, Renderer};
use regex::Regex;

use crate::model::explained;
use crate::{Error, Opened, open, read_text};

/// Bytes reserved for later edits in a rebuilt file.
pub const RESERVE: u64 = 64_000;

/// A token of the vocabulary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Token {
    /// Text of the token.
    Text(String),
    /// Id of the token.
    Id(String),
}

/// Changes, in the order of application.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Keys to remove.
    pub remove: Vec<String>,
    /// Keys to rename: old name, new name.
    pub rename: Vec<(String, String)>,
    /// Keys to set.
    pub set: Vec<KeyValue>,
    /// Keys to set to the content of a text file.
    pub set_file: Vec<(String, PathBuf)>,
    /// Text file with the chat template.
    pub chat_template_file: Option<PathBuf>,
    /// Special tokens, by the names of [`gguf_models::token::ROLES`].
    pub special_tokens: Vec<(String, Token)>,
    /// Name patterns of tensors to drop.
    pub drop: Vec<Regex>,
    /// Tensors to copy from other models: source and name pattern.
    pub graft: Vec<(String, Regex)>,
    /// Tensors to rename: old name, new name.
    pub rename_tensor: Vec<(String, String)>,
    /// Bytes reserved for later edits; `None` is [`RESERVE`] in a rebuilt file and 0 in a new file.
    pub reserve: Option<u64>,
}

impl Changes {
    /// Whether the set of tensors changes.
    fn changes_tensors(&self) -> bool {
        !(self.drop.is_empty() && self.graft.is_empty())
    }

    /// Returns the text files that are read.
    pub fn inputs(&self) -> impl Iterator<Item = &Path> {
        let texts = self.set_file.iter().map(|(_, path)| &**path);
        texts.chain(self.chat_template_file.as_deref())
    }

    /// Returns the names of the keys that get a value.
    fn keys_set(&self) -> Vec<&str> {
        let set = self.set.iter().map(|set| &*set.key);
        let set_file = self.set_file.iter().map(|(key, _)| &**key);
        let renamed = self.rename.iter().map(|(_, new)| &**new);
        let special = self.special_tokens.iter().filter_map(|(name, _)| token::id_key(name));
        set.chain(set_file).chain(renamed).chain(special).collect()
    }

    /// Applies the changes of keys. A stored graph is removed if a
    /// hyper-parameter of a known architecture changes. `renderer` parses new chat
    /// templates.
    ///
    /// # Errors
    /// If a key is missing or exists already, a value does not fit its key, a chat template is invalid, or a file cannot
    /// be read.
    pub fn edit_metadata(&self, metadata: &mut Metadata, renderer: &Renderer) -> Result<(), Error> {
        let hyper_parameters = hyper_parameters(metadata);
        let graph = metadata.get(stored::GRAPH_KEY).cloned();
        for key in &self.remove {
            metadata.remove(key).ok_or_else(|| no_key(key))?;
        }
        for (old, new) in &self.rename {
            if metadata.get(new).is_some() {
                return Err(refused(format!("there is a key `{new}` already")));
            }
            if !metadata.rename(old, new.clone()) {
                return Err(no_key(old));
            }
        }
        for set in &self.set {
            let value = set.value(metadata)?;
            metadata.set(set.key.clone(), value);
        }
        for (key, path) in &self.set_file {
            metadata.set(key.clone(), Value::from(read_text(path)?));
        }
        if let Some(path) = &self.chat_template_file {
            metadata.set(template::TemplateSource::KEY, Value::from(read_text(path)?));
        }
        for (name, token) in &self.special_tokens {
            let id = token_id(metadata, token)?;
            metadata.set(special_key(name)?, id);
        }
        self.check_templates(metadata, renderer)?;
        let is_same_graph = graph.as_ref() == metadata.get(stored::GRAPH_KEY);
        let is_known = metadata.architecture().and_then(schema::architecture).is_some();
        if is_same_graph && is_known && hyper_parameters != self::hyper_parameters(metadata) {
            stored::remove(metadata);
        }
        // The reserved space is not a key to edit.
        if self.set.iter().any(|set| set.key == RESERVE_KEY) {
            return Err(refused(format!("`{RESERVE_KEY}` is set by --reserve")));
        }
        Ok(())
    }

    /// Refuses invalid new chat templates; existing ones may stay.
    fn check_templates(&self, metadata: &Metadata, renderer: &Renderer) -> Result<(), Error> {
        let given = |option: &str, key: &str| (key.to_owned(), format!("--{option} {key}"));
        let shown = |path: &Path| path.display().to_string();
        let template_file = self.chat_template_file.iter();
        let template_file =
            template_file.map(|path| (template::TemplateSource::KEY.into(), shown(path)));
        let set = self.set.iter().map(|set| given("set", &set.key));
        let set_file = self.set_file.iter().map(|(key, path)| (key.clone(), shown(path)));
        let renamed = self.rename.iter().map(|(_, new)| given("rename", new));
        for (key, origin) in template_file.chain(set).chain(set_file).chain(renamed) {
            let refuse = |error| match error {
                template::Error::Process(_) => Error::from(error),
                _ => refused(format!("{origin} is not a valid chat template: {error}")),
            };
            if let Some(source) =
                template::TemplateSource::from_key(metadata, &key).map_err(refuse)?
            {
                renderer.parse(&source).map_err(refuse)?;
            }
        }
        Ok(())
    }

    /// Drops, copies and renames tensors, in this order. Returns the changes.
    ///
    /// # Errors
    /// If a pattern matches no tensor, or a tensor to rename does not exist.
    fn edit_tensors(
        &self,
        items: &mut Vec<Item>,
        others: &[Opened],
    ) -> Result<Vec<TensorChange>, Error> {
        let mut changed = Vec::new();
        for pattern in &self.drop {
            let dropped = items.extract_if(.., |item| pattern.is_match(&item.tensor.name));
            let before = changed.len();
            changed.extend(dropped.map(|item| TensorChange::Dropped(item.tensor.name)));
            if changed.len() == before {
                return Err(refused(format!("--drop {pattern}: no tensor name matches")));
            }
        }
        for ((source, pattern), other) in self.graft.iter().zip(others) {
            let tensors = other.model().tensors().iter();
            let mut named = tensors.filter(|tensor| pattern.is_match(&tensor.info.name)).peekable();
            if named.peek().is_none() {
                return Err(refused(format!("--graft {source}:{pattern}: no tensor name matches")));
            }
            for tensor in named {
                let item = Item::new(Tensor::of_model(tensor), tensor.info.tensor_type);
                let name = item.tensor.name.clone();
                match items.iter_mut().find(|old| old.tensor.name == name) {
                    Some(old) => {
                        *old = item;
                        changed.push(TensorChange::Replaced(name));
                    }
                    None => {
                        items.push(item);
                        changed.push(TensorChange::Added(name));
                    }
                }
            }
        }
        for (old, new) in &self.rename_tensor {
            let item = items.iter_mut().find(|item| item.tensor.name == *old);
            item.ok_or_else(|| no_tensor(old))?.tensor.name.clone_from(new);
            changed.push(TensorChange::Renamed(old.clone(), new.clone()));
        }
        Ok(changed)
    }

    /// Opens the models from which tensors are copied.
    fn others(&self) -> Result<Vec<Opened>, Error> {
        self.graft.iter().map(|(source, _)| open(source)).collect()
    }

    fn rename_tensors(&self, draft: &mut RawHeader) -> Result<(), Error> {
        for (old, new) in &self.rename_tensor {
            let tensor = draft.tensors.iter_mut().find(|tensor| tensor.name == *old);
            tensor.ok_or_else(|| no_tensor(old))?.name = new.clone();
        }
        Ok(())
    }
}

/// Returns the keys that determine the graph of a model, with their values.
fn hyper_parameters(metadata: &Metadata) -> Vec<(String, Value)> {
    let Some(architecture) = metadata.architecture() else { return Vec::new() };
    let is_one = |key: &str| {
        key == "general.architecture"
            || key.strip_prefix(architecture).is_some_and(|rest| rest.starts_with('.'))
    };
    let keys = metadata.iter().filter(|(key, _)| is_one(key));
    keys.map(|(key, value)| (key.to_owned(), value.clone())).collect()
}

/// Change of a key.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyChange {
    /// The key.
    pub key: String,
    /// Present value; `None` for a new key.
    pub before: Option<Value>,
    /// New value; `None` for a removed key.
    pub after: Option<Value>,
}

/// Change of a tensor, with its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorChange {
    /// Dropped.
    Dropped(String),
    /// Replaced by the tensor of another model.
    Replaced(String),
    /// Copied from another model.
    Added(String),
    /// Renamed: old name, new name.
    Renamed(String, String),
}

/// Returns the effect of changes on the tensors of a model, without writing.
///
/// # Errors
/// As [`rewrite`], except errors of keys.
pub fn preview_tensors(model: &Model, changes: &Changes) -> Result<Vec<TensorChange>, Error> {
    changes.edit_tensors(&mut Job::copy(model).items, &changes.others()?)
}

/// Returns the effect of changes on the keys of a model, without writing.
///
/// # Errors
/// As [`Changes::edit_metadata`].
pub fn preview(
    model: &Model,
    changes: &Changes,
    renderer: &Renderer,
) -> Result<Vec<KeyChange>, Error> {
    let (before, mut after) = (model.metadata(), model.metadata().clone());
    changes.edit_metadata(&mut after, renderer)?;
    let set = after.iter().map(|(key, value)| (key, before.get(key), Some(value)));
    let removed = before.iter().filter(|(key, _)| after.get(key).is_none());
    let all = set.chain(removed.map(|(key, value)| (key, Some(value), None)));
    let changed = all.filter(|(_, before, after)| before != after);
    let change = |(key, before, after): (&str, Option<&Value>, Option<&Value>)| KeyChange {
        key: key.to_owned(),
        before: before.cloned(),
        after: after.cloned(),
    };
    Ok(changed.map(change).collect())
}

/// Checks the values that changes set, without writing: unknown keys whose spelling is close to a standard key or
/// that stand among the standard keys, and values that the schema or another key does not allow. Returns the new
/// warnings about the keys.
///
/// # Errors
/// [`Error::Caller`] with code `edit-refused` for such a key or value; as [`new_findings`].
pub fn validate(
    model: &Model,
    changes: &Changes,
    renderer: &Renderer,
) -> Result<Vec<Finding>, Error> {
    let keys = changes.keys_set();
    for key in keys.iter().filter(|key| model.metadata().get(key).is_none()) {
        if let Some(what) = unknown_key(key, model.metadata().architecture()) {
            return Err(Error::request("edit-refused", what, FORCE_HELP));
        }
    }
    let mut found = new_findings(model, changes, renderer)?;
    found.retain(|finding| finding.key.is_some());
    let is_refused = |finding: &&Finding| {
        finding.severity == Severity::Error || finding.code == "token-id-range"
    };
    match found.iter().find(is_refused) {
        Some(finding) => {
            let what = match &finding.key {
                Some(key) => format!("`{key}`: {}", finding.message),
                None => finding.message.to_string(),
            };
            Err(Error::request("edit-refused", what, FORCE_HELP))
        }
        None => {
            let is_set = |key: &str| keys.contains(&key);
            found.retain(|finding| {
                finding.severity == Severity::Warning && finding.key.as_deref().is_some_and(is_set)
            });
            Ok(found)
        }
    }
}

const FORCE_HELP: &str = "use --force to set it anyway";

/// Describes a key that no program reads; `None` for standard keys, and for names of the user's own.
fn unknown_key(key: &str, architecture: Option<&str>) -> Option<String> {
    if key == RESERVE_KEY || schema::key(key).is_some() {
        return None;
    }
    if let Some(near) = schema::nearest_key(key) {
        return Some(format!("`{key}` is not a standard key; did you mean `{near}`?"));
    }
    let prefix = key.split('.').next()?;
    let is_standard = ["general", "tokenizer", "split", "adapter"].contains(&prefix)
        || Some(prefix) == architecture;
    is_standard
        .then(|| format!("`{key}` is not a standard key: `gguf` and other programs ignore it"))
}

/// Returns the findings about the changed header that the present one does not have, without writing.
///
/// # Errors
/// As [`preview`]; if a tensor to rename does not exist.
pub fn new_findings(
    model: &Model,
    changes: &Changes,
    renderer: &Renderer,
) -> Result<Vec<Finding>, Error> {
    let mut draft = model.to_raw_header()?;
    let known = gguf_check::check_raw_header(&draft);
    changes.edit_metadata(&mut draft.metadata, renderer)?;
    changes.rename_tensors(&mut draft)?;
    let mut found = gguf_check::check_raw_header(&draft);
    found.retain(|finding| !known.contains(finding));
    Ok(found)
}

/// A planned file with changes.
pub struct Rewritten {
    /// Content of the file.
    pub job: Job,
    /// Files of other models whose tensors are copied, which no output may replace.
    pub files: Vec<PathBuf>,
}

/// Plans a new file with changes.
///
/// # Errors
/// As [`Changes::edit_metadata`]; if a pattern matches no tensor, or another model cannot be opened.
pub fn rewrite(model: &Model, changes: &Changes, renderer: &Renderer) -> Result<Rewritten, Error> {
    let others = changes.others()?;
    let mut job = Job::copy(model);
    changes.edit_metadata(&mut job.metadata, renderer)?;
    if !changes.edit_tensors(&mut job.items, &others)?.is_empty() {
        stored::remove(&mut job.metadata);
    }
    if let Some(bytes) = changes.reserve {
        reserve(&mut job.metadata, bytes);
    }
    let files = others.iter().flat_map(Opened::files).map(Path::to_owned).collect();
    Ok(Rewritten { job, files })
}

/// Changes the model at `path` in place; for a sharded model its first file, which has the keys. Tensor data is not moved
/// if only keys and names change and the new header fits.
///
/// # Errors
/// As [`rewrite`]; if tensors of a sharded model would change; if another process edits the file, it cannot be written, or
/// `progress` stopped the work.
pub fn in_place(
    path: &Path,
    changes: &Changes,
    renderer: &Renderer,
    progress: &dyn Progress,
) -> Result<(PathBuf, EditOutcome), Error> {
    let found = ShardSet::find(path);
    let files = found.map_err(|error| explained(error, &path.to_string_lossy()))?;
    let (file, several) = (&files.paths()[0], files.paths().len() > 1);
    if !changes.changes_tensors() {
        if several && !changes.rename_tensor.is_empty() {
            return Err(several_files("renamed"));
        }
        let saved = edit_header(file, changes.reserve.unwrap_or(RESERVE), progress, |draft| {
            changes.edit_metadata(&mut draft.metadata, renderer)?;
            changes.rename_tensors(draft)
        })?;
        return Ok((file.clone(), saved));
    }
    if several {
        return Err(several_files("dropped"));
    }
    // Locked from before the file is read until it is replaced.
    let _lock = EditLock::take(file)?;
    let rewritten = rewrite(&Model::open(file)?, changes, renderer)?;
    let overwrite = Overwrite::new(Existing::Replace).protecting(&rewritten.files);
    rewritten.job.replace(file, &overwrite, progress)?;
    Ok((file.clone(), EditOutcome::Rebuilt))
}

/// Returns the effect of [`in_place`] on the file at `path`, without writing: for changes of keys and tensor names.
///
/// # Errors
/// As [`Changes::edit_metadata`]; if the file cannot be read.
pub fn preview_in_place(
    path: &Path,
    changes: &Changes,
    renderer: &Renderer,
) -> Result<EditPreview, Error> {
    preview_header(path, changes.reserve.unwrap_or(RESERVE), |draft| {
        changes.edit_metadata(&mut draft.metadata, renderer)?;
        changes.rename_tensors(draft)
    })
}

/// Writes a changed copy of a model to `output`, which must not exist.
///
/// # Errors
/// As [`rewrite`]; if `output` exists or cannot be written, or `progress` stopped the work.
pub fn copy(
    model: &Model,
    changes: &Changes,
    renderer: &Renderer,
    output: &Path,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let rewritten = rewrite(model, changes, renderer)?;
    rewritten.job.write(output, &Overwrite::new(Existing::Refuse), progress)
}

fn several_files(what: &str) -> Error {
    Error::request(
        "output-missing",
        format!("tensors of a sharded model cannot be {what} in place"),
        "give -o",
    )
}

fn refused(what: String) -> Error {
    Error::request("edit-refused", what, "")
}

fn no_key(key: &str) -> Error {
    refused(format!("there is no key `{key}`"))
}

fn no_tensor(name: &str) -> Error {
    refused(format!("there is no tensor `{name}`"))
}

/// Returns the key of a special token.
fn special_key(name: &str) -> Result<&'static str, Error> {
    token::id_key(name).ok_or_else(|| {
        let names = token::ROLES.map(|role| role.name).join(" ");
        refused(format!("`{name}` is not a special token; expected one of: {names}"))
    })
}

fn token_id(metadata: &Metadata, token: &Token) -> Result<u32, Error> {
    let tokens = metadata.array("tokenizer.ggml.tokens");
    match token {
        Token::Id(id) => {
            let tokens = tokens.map_or(0, |tokens| tokens.len());
            let id = id.parse::<u32>().ok().filter(|id| u64::from(*id) < tokens);
            let last = tokens.saturating_sub(1);
            id.ok_or_else(|| refused(format!("expected an id from 0 to {last}")))
        }
        Token::Text(text) => {
            let missing = || Finding::error("tokenizer-missing", "the file has no vocabulary");
            let mut tokens = tokens.and_then(|tokens| tokens.strings()).ok_or_else(missing)?;
            let id = tokens.position(|token| token == text.as_bytes());
            id.and_then(|id| id.try_into().ok())
                .ok_or_else(|| refused(format!("`{text}` is not a token of the vocabulary")))
        }
    }
}
