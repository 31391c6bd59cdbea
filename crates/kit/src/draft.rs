//! Draft models of speculative decoding.

use std::sync::Arc;

use gguf_graph::{Attention, KvSource, Mask, Op, OutputKind};
use gguf_runtime::memory_estimate::trained_context;
use gguf_runtime::speculation::DraftModel;
use gguf_runtime::{Context, ContextOptions, Executor};
use gguf_tokenizer::{Tokenizer, TokenizerOptions};

use crate::run::{ExecutorOptions, LoadedModel, load};
use crate::{Error, redact};

/// Maximum difference of the numbers of tokens, which may be padded differently. As in llama.cpp.
const PADDING: usize = 128;

/// First id whose text must be equal: the ids before it may be unused. As in llama.cpp.
const FIRST_ID: usize = 5;

/// Help for a draft model of another vocabulary.
const SAME_FAMILY: &str =
    "use a smaller model of the same family, with the same tokenizer, or omit --draft";

/// A loaded model that can draft tokens for a target model.
pub struct Draft {
    model: LoadedModel,
    source: String,
    target: Arc<Executor>,
    /// Size of the vocabulary of the target model.
    vocabulary: usize,
}

impl Draft {
    /// Loads a draft model for a target model and its tokenizer.
    ///
    /// # Errors
    /// As [`load`]; `draft-unusable` if tokens cannot be removed from the context of either model, or the draft model is
    /// not causal; `vocabulary-differs` if a token has another text, or the models begin or end texts differently.
    pub fn load(
        source: &str,
        options: &ExecutorOptions,
        target: &LoadedModel,
        tokenizer: &Tokenizer,
    ) -> Result<Self, Error> {
        if !target.executor.can_truncate() {
            let what =
                "drafted tokens cannot be removed from the recurrent states of the target model";
            return Err(Error::request("draft-unusable", what, "omit --draft"));
        }
        let model = load(source, options).map_err(|error| of_draft(error, &redact(source)))?;
        let source = redact(source);
        if let Some(fault) = fault(&model.executor) {
            let what = format!("{source} cannot draft tokens: it {fault}");
            let help = "use a causal language model without recurrent states, or omit --draft";
            return Err(Error::request("draft-unusable", what, help));
        }
        let own = Tokenizer::from_metadata(&model.metadata, TokenizerOptions::default())
            .map_err(|error| error.in_file(source.as_ref()))?;
        if let Some(difference) = difference(&target.metadata, tokenizer, &model.metadata, &own) {
            let what = format!("the vocabulary of the draft model {source} differs: {difference}");
            return Err(Error::request("vocabulary-differs", what, SAME_FAMILY));
        }
        let vocabulary = target.executor.vocabulary_len().unwrap_or(tokenizer.len());
        Ok(Self { model, source, target: Arc::clone(&target.executor), vocabulary })
    }

    /// Returns the context size in tokens that the draft model was trained with; `None` if it does not state it.
    pub fn trained_context(&self) -> Option<usize> {
        usize::try_from(trained_context(&self.model.metadata)?).ok()
    }

    /// Returns a source of drafts with a context of the options.
    ///
    /// # Errors
    /// `context-full` if the draft model was trained with a shorter context; as [`Context::new`].
    pub fn source(&self, options: ContextOptions) -> Result<DraftModel, Error> {
        if let Some(trained) = self.trained_context().filter(|trained| options.tokens > *trained) {
            let (source, tokens) = (&self.source, options.tokens);
            let what = format!(
                "the draft model {source} was trained with a context of {trained} tokens; the context has {tokens}"
            );
            let help = format!("set --ctx-size to {trained} or less, or omit --draft");
            return Err(Error::request("context-full", what, help));
        }
        let context = Context::new(self.model.executor.clone(), options)
            .map_err(|error| of_draft(error, &self.source))?;
        Ok(DraftModel::new(context, &self.target, self.vocabulary))
    }
}

/// Adds to a refused request that it concerns the draft model.
fn of_draft(error: Error, source: &str) -> Error {
    match error {
        Error::Caller(mut finding) => {
            finding.message = format!("draft model {source}: {}", finding.message).into();
            finding.help = match &*finding.help {
                "" => "omit --draft".into(),
                help => format!("{help}, or omit --draft").into(),
            };
            Error::Caller(finding)
        }
        other => other,
    }
}

/// Returns why a model cannot draft tokens.
fn fault(executor: &Executor) -> Option<&'static str> {
    let graph = executor.graph();
    let looks_ahead = |op: &Op| {
        let Op::Attention(Attention { kv, mask, .. }) = op else { return false };
        let is_causal = matches!(mask, Mask::Causal | Mask::SlidingWindow(_) | Mask::Chunked(_));
        !is_causal || !matches!(kv, KvSource::Cached { .. })
    };
    if graph.encoder().is_some() {
        Some("has an encoder")
    } else if graph.output(OutputKind::Logits).is_none() {
        Some("computes no logits")
    } else if graph.main().0.ops.iter().any(looks_ahead) {
        Some("is not causal")
    } else if !executor.can_truncate() {
        Some("has recurrent states, from which tokens cannot be removed")
    } else {
        None
    }
}

/// Returns the first difference of two vocabularies.
fn difference(
    metadata: &gguf::Metadata,
    target: &Tokenizer,
    draft_metadata: &gguf::Metadata,
    draft: &Tokenizer,
) -> Option<String> {
    let kind = |metadata: &gguf::Metadata| {
        metadata.str("tokenizer.ggml.model").unwrap_or("none").to_owned()
    };
    let (kinds, lens) = ([kind(draft_metadata), kind(metadata)], [draft.len(), target.len()]);
    if kinds[0] != kinds[1] {
        return Some(format!("its tokenizer is `{}`, not `{}`", kinds[0], kinds[1]));
    }
    if lens[0].abs_diff(lens[1]) > PADDING {
        return Some(format!("it has {} tokens, not {}", lens[0], lens[1]));
    }
    let text = |tokenizer: &Tokenizer, id: u32| {
        String::from_utf8_lossy(tokenizer.token_text(id).unwrap_or_default()).into_owned()
    };
    let ids = (FIRST_ID..lens[0].min(lens[1])).filter_map(|id| u32::try_from(id).ok());
    let other = ids.into_iter().find(|id| draft.token_text(*id) != target.token_text(*id));
    if let Some(id) = other {
        return Some(format!("token {id} is {:?}, not {:?}", text(draft, id), text(target, id)));
    }
    let added = |name, draft: Option<u32>, target: Option<u32>| {
        let words = |id: Option<u32>| id.map_or("none".to_owned(), |id| id.to_string());
        (draft != target)
            .then(|| format!("the {name} token is {}, not {}", words(draft), words(target)))
    };
    added("BOS", draft.first_token(), target.first_token())
        .or_else(|| added("EOS", draft.last_token(), target.last_token()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_name_the_draft_model() {
        let formatted = |help: &'static str| {
            of_draft(Error::request("memory-budget", "2 MB are allowed", help), "a.gguf")
                .to_string()
        };
        let expected = "draft model a.gguf: 2 MB are allowed";
        let found = formatted("use a smaller context");
        assert!(found.contains(expected), "{found}");
        assert!(found.contains("use a smaller context, or omit --draft"), "{found}");
        let found = formatted("");
        assert!(found.contains(expected) && !found.contains(", or omit"), "{found}");
    }
}
