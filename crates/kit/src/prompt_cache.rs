//! Prompt caches: GGUF files with the tokens of a prompt and the states of a model after it, so that the prompt is not
//! computed again.
//!
//! | key | value |
//! |---|---|
//! | `general.type` | `prompt_cache` |
//! | `gguf_kit.prompt_cache.tokens` | token ids |
//! | `gguf_kit.prompt_cache.model` | digest of the model and its adapters |
//! | `gguf_kit.prompt_cache.precision`, `.instructions`, `.cache_type` | how the states were computed |
//!
//! Tensors are the arrays of [`Context::states`].

use std::path::{Path, PathBuf};

use gguf::{Array, Header, Metadata, RawHeader, Shape, TensorInfo, write_header};
use gguf_runtime::{CacheType, Context, StateArray};
use gguf_store::{AtomicFile, Existing, Model, Progress};

use crate::generate::read;
use crate::run::LoadedModel;
use crate::{Error, overwrite};

const TYPE: &str = "general.type";
const PROMPT_CACHE: &str = "prompt_cache";
const TOKENS: &str = "gguf_kit.prompt_cache.tokens";
const PREFIX: &str = "gguf_kit.prompt_cache.";

/// Help for a cache that cannot be used.
const ANOTHER_FILE: &str = "name another file, or remove this one";

/// A prompt cache of a model.
pub struct PromptCache {
    path: PathBuf,
    /// Names and values of what must be equal in a saved cache.
    identity: Vec<(&'static str, String)>,
}

impl PromptCache {
    /// Returns the cache at `path` of a model with KV caches of a type. The file need not exist.
    ///
    /// # Errors
    /// `prompt-cache-unusable` if the model has an encoder or no states; `prompt-cache-invalid` and `prompt-cache-other`
    /// as in [`PromptCache::restore`]; if the tensors of the model cannot be read.
    pub fn new(path: &Path, model: &LoadedModel, cache_type: CacheType) -> Result<Self, Error> {
        let executor = &model.executor;
        let graph = executor.graph();
        let fault = match (graph.encoder(), graph.raw().states.is_empty()) {
            (Some(_), _) => Some("has an encoder"),
            (None, true) => Some("keeps no states"),
            (None, false) => None,
        };
        if let Some(fault) = fault {
            let what = format!("the model {fault}: there is nothing to save after a prompt");
            return Err(Error::request("prompt-cache-unusable", what, "omit --prompt-cache"));
        }
        let identity = vec![
            ("model", model.digest()?),
            ("precision", format!("{:?}", executor.precision()).to_lowercase()),
            ("instructions", executor.instructions().name().to_owned()),
            ("cache_type", cache_type.name().to_owned()),
        ];
        let cache = Self { path: path.to_owned(), identity };
        cache.open()?;
        Ok(cache)
    }

    /// Restores the saved tokens with which `prompt` begins in the first sequence of a context, except for its last token,
    /// which must be computed, and returns their number: 0 without a file, and if the prompt does not begin with all
    /// saved tokens and the others cannot be removed ([`Context::truncate`]).
    ///
    /// # Errors
    /// `prompt-cache-invalid` if the file is no prompt cache, or damaged; `prompt-cache-other` if it is of another model,
    /// precision, instruction set or type of KV caches, or of another version of gguf-kit; `context-full` if more tokens
    /// are restored than the context holds; if it cannot be read.
    pub fn restore(&self, context: &mut Context, prompt: &[u32]) -> Result<usize, Error> {
        let Some((file, tokens)) = self.open()? else { return Ok(0) };
        let common = tokens.iter().zip(prompt).take_while(|(a, b)| a == b).count();
        let common = common.min(prompt.len().saturating_sub(1));
        if common == 0 {
            return Ok(0);
        }
        let index = file.index();
        let mut read = |name: &str| {
            let Some(tensor) = index.get(name) else { return Ok(None) };
            let len = tensor.info.byte_len().and_then(|len| usize::try_from(len).ok());
            let mut data = vec![0; len.unwrap_or(0)];
            tensor.read_at(&mut data, 0)?;
            let shape = &tensor.info.shape;
            let (row_len, rows) = (shape.row_len(), shape.iter().skip(1).product());
            let tensor_type = tensor.info.tensor_type;
            Ok(Some(StateArray { name: name.to_owned(), tensor_type, row_len, rows, data }))
        };
        context.restore(0, tokens.len(), common, &mut read).map_err(|fault| {
            match fault.code() {
                "state-invalid" => self.invalid(format!("is damaged: {fault}")),
                _ => fault,
            }
        })?;
        Ok(common)
    }

    /// Computes the tokens of `prompt` that the first sequence of the context does not have, except for the last one, and
    /// saves the states.
    ///
    /// # Errors
    /// As [`Context::run`] and [`PromptCache::save`].
    pub fn extend(
        &self,
        context: &mut Context,
        prompt: &[u32],
        progress: &dyn Progress,
    ) -> Result<(), Error> {
        let last = prompt.len().saturating_sub(1);
        let rest = prompt.get(context.len(0)..last).unwrap_or_default();
        progress.begin("prompt", rest.len() as u64);
        read(context, rest, None, progress)?;
        self.save(context, &prompt[..last])
    }

    /// Saves the states of the first sequence of a context, given its tokens. Replaces an existing prompt cache.
    ///
    /// # Errors
    /// `prompt-cache-invalid` if another file exists; `prompt-cache-other` as in [`PromptCache::restore`]; if the file
    /// cannot be written, and then it is unchanged.
    pub fn save(&self, context: &Context, tokens: &[u32]) -> Result<(), Error> {
        self.open()?;
        let mut metadata = Metadata::new();
        metadata.push(TYPE, PROMPT_CACHE);
        for (name, value) in &self.identity {
            metadata.push(format!("{PREFIX}{name}"), value.as_str());
        }
        metadata.push(TOKENS, Array::from(tokens));
        let mut draft = RawHeader { metadata, ..RawHeader::default() };
        for array in context.states(0) {
            let shape = Shape::new(&[array.row_len, array.rows]);
            let too_large = || {
                let what = format!("`{}` is larger than tensors can be", array.name);
                Error::request("prompt-cache-unusable", what, "use a smaller context")
            };
            draft.tensors.push(TensorInfo {
                name: array.name.clone(),
                shape: shape.ok_or_else(too_large)?,
                tensor_type: array.tensor_type,
                offset: 0,
                opaque_len: None,
            });
        }
        draft.lay_out()?;
        let header = Header::new(draft)?;
        let bytes = write_header(&header)?;
        let start = bytes.len() as u64;
        let file = AtomicFile::create(&self.path, &overwrite(Existing::Replace))?;
        file.set_len(header.file_len(bytes.len())?)?;
        file.write_at(&bytes, 0)?;
        for (tensor, array) in header.tensors().iter().zip(context.states(0)) {
            file.write_at(&array.data, start + tensor.offset)?;
        }
        file.commit()
    }

    /// Opens the file if it exists, and returns its tokens.
    fn open(&self) -> Result<Option<(Model, Vec<u32>)>, Error> {
        if !self.path.exists() {
            return Ok(None);
        }
        let file = Model::open(&self.path).map_err(|fault| match fault.finding() {
            Some(finding) => self.invalid(format!("is not a prompt cache: {}", finding.message)),
            None => fault,
        })?;
        let metadata = file.metadata();
        if metadata.str(TYPE) != Some(PROMPT_CACHE) {
            return Err(self.invalid("is not a prompt cache"));
        }
        for (name, value) in &self.identity {
            let saved = metadata.str(&format!("{PREFIX}{name}")).unwrap_or("unknown");
            if saved != value {
                let what = match *name {
                    "model" => {
                        "was saved with another model, other adapters, or another version of gguf"
                            .to_owned()
                    }
                    _ => format!("was saved with {} {saved}, not {value}", name.replace('_', " ")),
                };
                return Err(Error::input("prompt-cache-other", &self.path, what, ANOTHER_FILE));
            }
        }
        let tokens = metadata.array(TOKENS).and_then(Array::to_i64s).unwrap_or_default();
        let ids: Option<Vec<u32>> = tokens.iter().map(|id| u32::try_from(*id).ok()).collect();
        match ids {
            Some(ids) if !ids.is_empty() => Ok(Some((file, ids))),
            _ => Err(self.invalid(format!("is damaged: `{TOKENS}` is no list of token ids"))),
        }
    }

    fn invalid(&self, what: impl Into<Box<str>>) -> Error {
        Error::input("prompt-cache-invalid", &self.path, what, ANOTHER_FILE)
    }
}
