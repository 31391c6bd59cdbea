//! Draft models of speculative decoding.

use std::path::PathBuf;
use std::sync::Arc;

use gguf::{Finding, TensorType};
use gguf_graph::{Attention, Graph, KvSource, Mask, Op, OutputKind};
use gguf_models::{DraftFeatures, Purpose};
use gguf_runtime::memory_estimate::trained_context;
use gguf_runtime::speculation::{
    Block, BlockDraft, DraftModel, DraftSource, FeatureDraft, TargetVocabulary,
};
use gguf_runtime::{Context, ContextOptions, Executor, MemoryBudget};
use gguf_store::Model;
use gguf_tokenizer::{Tokenizer, TokenizerOptions};

use crate::run::{ExecutorOptions, LoadedModel, load_model};
use crate::{Error, open, redact};

/// Error code of a model that cannot draft tokens.
const UNUSABLE: &str = "draft-unusable";

/// Architecture of EAGLE 3 models.
const EAGLE3: &str = "eagle3";

/// Architecture of DFlash and DSpark models.
const DFLASH: &str = "dflash";

/// Tensor that only DSpark models have.
const MARKOV: &str = "markov_w1.weight";

/// Maximum difference of the numbers of tokens, which may be padded differently. As in llama.cpp.
const PADDING: usize = 128;

/// First id whose text must be equal: the ids before it may be unused. As in llama.cpp.
const FIRST_ID: usize = 5;

/// Help for a draft model of another vocabulary.
const SAME_FAMILY: &str =
    "use a smaller model of the same family, with the same tokenizer, or omit --draft";

/// Maximum number of tokens of a block.
const MAX_BLOCK: u32 = 1024;

/// Number of drafted tokens after which the weights of a draft model are repacked.
const REPACK_AFTER: usize = 48;

/// Tensors that a draft model without a vocabulary of its own takes from its target model.
const OF_TARGET: &[&str] = &["token_embd.weight", "output.weight"];

/// A loaded model that can draft tokens for a target model.
pub struct Draft {
    executor: Arc<Executor>,
    /// Context size in tokens that the draft model was trained with, if it limits that of the target model.
    trained_context: Option<usize>,
    source: String,
    target: Arc<Executor>,
    vocabulary: TargetVocabulary,
    kind: Kind,
}

/// Kind of a draft model, by its inputs and predictions.
enum Kind {
    /// A language model, which reads tokens.
    Tokens,
    /// A model that reads features of the target model, and predicts a token at a time.
    Features,
    /// A model that reads features of the target model, and predicts blocks; with a Markov head, if it has one.
    Blocks(Block, Option<Arc<Executor>>),
}

impl Draft {
    /// Loads a draft model for a target model and its tokenizer: a smaller language model, an EAGLE 3, DFlash or DSpark
    /// model, or a file with the MTP layers of the target model.
    ///
    /// # Errors
    /// As [`load`](crate::run::load); `draft-unusable` if the draft model is not causal, has recurrent states, or was made
    /// for another target model; `vocabulary-differs` if a token has another text, or the models begin or end texts
    /// differently.
    pub fn load(
        source: &str,
        options: &ExecutorOptions,
        target: &LoadedModel,
        tokenizer: &Tokenizer,
    ) -> Result<Self, Error> {
        let name = redact(source);
        let opened = open(source)?;
        let files = opened.files().map(PathBuf::from).collect();
        let model = opened.into_model();
        let architecture = model.metadata().architecture();
        let draft = if architecture == Some(EAGLE3) {
            eagle3(&model, &name, options, target)
        } else if architecture == Some(DFLASH) {
            dflash(&model, &name, options, target)
        } else if has_only_mtp(&model) {
            mtp(&model, &name, options, target)
        } else {
            let loaded = load_model(&model, files, source, options);
            loaded.and_then(|loaded| language_model(loaded, &name, target))
        };
        let draft = draft.map_err(|error| of_draft(error, &name))?;
        let own = Tokenizer::from_metadata(model.metadata(), TokenizerOptions::default())
            .map_err(|error| error.in_file(name.as_ref()))?;
        let difference = difference(&target.metadata, tokenizer, model.metadata(), &own);
        if let Some(difference) = difference {
            let what = format!("the vocabulary of the draft model {name} differs: {difference}");
            return Err(Error::request("vocabulary-differs", what, SAME_FAMILY));
        }
        Ok(draft)
    }

    /// Returns the MTP layers of a model as its draft model; `None` if it has none that can draft for it.
    ///
    /// # Errors
    /// If tensors of the MTP layers are missing or do not fit.
    pub fn mtp(options: &ExecutorOptions, target: &LoadedModel) -> Result<Option<Self>, Error> {
        if !has_mtp(&target.model) {
            return Ok(None);
        }
        match mtp(&target.model, "MTP layers", options, target) {
            Err(error) if error.code() == UNUSABLE => Ok(None),
            draft => draft.map(Some),
        }
    }

    /// Returns the context size in tokens that the draft model was trained with; `None` if it does not limit that of the
    /// target model.
    pub fn trained_context(&self) -> Option<usize> {
        self.trained_context
    }

    /// Returns the executor for the context of the target model: it computes what the draft model reads.
    pub fn target(&self) -> &Arc<Executor> {
        &self.target
    }

    /// Returns a source of drafts with a context of the options.
    ///
    /// # Errors
    /// `context-full` if the draft model was trained with a shorter context; as [`Context::new`].
    pub fn source(&self, options: ContextOptions) -> Result<Box<dyn DraftSource>, Error> {
        if let Some(trained) = self.trained_context.filter(|trained| options.tokens > *trained) {
            let (source, tokens) = (&self.source, options.tokens);
            let what = format!(
                "the draft model {source} was trained with a context of {trained} tokens; the context has {tokens}"
            );
            let help = format!("set --ctx-size to {trained} or less, or omit --draft");
            return Err(Error::request("context-full", what, help));
        }
        let context = Context::new(self.executor.clone(), options)
            .map_err(|error| of_draft(error, &self.source))?;
        let (target, vocabulary) = (&self.target, self.vocabulary.clone());
        Ok(match &self.kind {
            Kind::Tokens => Box::new(DraftModel::new(context, target, vocabulary)),
            Kind::Features => Box::new(FeatureDraft::new(context, target, vocabulary)),
            Kind::Blocks(block, markov) => {
                let context_of = |head: &Arc<Executor>| Context::new(head.clone(), options);
                let markov = markov.as_ref().map(context_of).transpose();
                let markov = markov.map_err(|error| of_draft(error, &self.source))?;
                Box::new(BlockDraft::new(context, markov, *block, target, vocabulary))
            }
        })
    }
}

/// Returns a language model as a draft model.
fn language_model(model: LoadedModel, source: &str, target: &LoadedModel) -> Result<Draft, Error> {
    if let Some(fault) = fault(&model.executor) {
        let what = format!("it cannot draft tokens: it {fault}");
        let help = "use a causal language model without recurrent states";
        return Err(Error::request(UNUSABLE, what, help));
    }
    let trained = trained_context(&model.metadata);
    // A draft that ends soon should not wait for it.
    let executor = Executor::clone(&model.executor).with_repacking_after(REPACK_AFTER);
    Ok(Draft {
        executor: Arc::new(executor),
        trained_context: trained.and_then(|trained| usize::try_from(trained).ok()),
        source: source.to_owned(),
        target: target.executor.clone(),
        vocabulary: TargetVocabulary::with_equal_ids(vocabulary(target)),
        kind: Kind::Tokens,
    })
}

/// Returns an EAGLE 3 model as a draft model.
fn eagle3(
    model: &Model,
    source: &str,
    options: &ExecutorOptions,
    target: &LoadedModel,
) -> Result<Draft, Error> {
    let hidden = model.metadata().u64(&format!("{EAGLE3}.target_hidden_size")).unwrap_or(0);
    let target_executor = with_layer_inputs(model, EAGLE3, hidden, target)?;
    let executor = of_target_vocabulary(model, &Purpose::Model, options, target)?;
    let vocabulary = target_vocabulary(model, &executor, target)?;
    Ok(of_features(executor, source, target_executor, vocabulary, Kind::Features))
}

/// Returns a DFlash or DSpark model as a draft model.
fn dflash(
    model: &Model,
    source: &str,
    options: &ExecutorOptions,
    target: &LoadedModel,
) -> Result<Draft, Error> {
    let metadata = model.metadata();
    let hidden = metadata.u64(&format!("{DFLASH}.embedding_length")).unwrap_or(0);
    let target_executor = with_layer_inputs(model, DFLASH, hidden, target)?;
    let executor = of_target_vocabulary(model, &Purpose::Model, options, target)?;
    let vocabulary = target_vocabulary(model, &executor, target)?;
    let tokens = vocabulary.len;
    let number = |name: &str| metadata.u64(name).and_then(|number| u32::try_from(number).ok());
    let mask = number("tokenizer.ggml.mask_token_id").filter(|id| (*id as usize) < tokens);
    let len = number(&format!("{DFLASH}.block_size")).filter(|len| (2..=MAX_BLOCK).contains(len));
    let (Some(mask), Some(len)) = (mask, len) else {
        let what = format!(
            "it has no mask token of the target model, or no block size from 2 to {MAX_BLOCK}"
        );
        return Err(Error::request(UNUSABLE, what, "convert it again"));
    };
    let has_markov_head = model.index().contains_key(MARKOV);
    let head = has_markov_head
        .then(|| of_target_vocabulary(model, &Purpose::MarkovHead, options, target))
        .transpose()?;
    if let Some(head) = &head {
        let widths = [head, &executor].map(|model| model.width(OutputKind::Logits));
        if widths[0] != widths[1] || head.vocabulary_len().is_none_or(|len| len < tokens) {
            let what = "its Markov head has another vocabulary";
            return Err(Error::request(UNUSABLE, what, "convert it again"));
        }
    }
    let from_anchor = metadata.get(&format!("{DFLASH}.sample_from_anchor"));
    let predicts_from_anchor =
        has_markov_head && from_anchor.and_then(gguf::Value::to_bool).unwrap_or(true);
    let block = Block { len: len as usize, mask, predicts_from_anchor };
    Ok(of_features(executor, source, target_executor, vocabulary, Kind::Blocks(block, head)))
}

/// Returns the target model as one that computes the hidden states that a draft of an architecture reads, given their number per
/// layer.
fn with_layer_inputs(
    model: &Model,
    architecture: &str,
    hidden: u64,
    target: &LoadedModel,
) -> Result<Arc<Executor>, Error> {
    let layers = model.metadata().get(&format!("{architecture}.target_layers"));
    let layers = layers
        .and_then(gguf::Value::as_array)
        .and_then(|layers| layers.iter().map(|layer| layer.to_u64()).collect::<Option<Vec<_>>>());
    let Some(layers) = layers else {
        let what = "it does not name the layers of its target model (`target_layers`)";
        return Err(Error::request(UNUSABLE, what, "convert it again"));
    };
    let reads = hidden.saturating_mul(layers.len() as u64);
    let (target_executor, width) = with_features(target, DraftFeatures::LayerInputs(layers))?;
    if reads != width as u64 {
        let what = format!(
            "it was made for another target model: it reads {reads} hidden states of a token, not {width}"
        );
        return Err(Error::request(UNUSABLE, what, "use the draft of this target model"));
    }
    Ok(target_executor)
}

/// Creates the executor of a draft model that may lack token embedding and output matrix, which are those of the target model
/// then.
fn of_target_vocabulary(
    model: &Model,
    purpose: &Purpose,
    options: &ExecutorOptions,
    target: &LoadedModel,
) -> Result<Arc<Executor>, Error> {
    // Its own embedding and output come last, and replace those of the target model.
    let shared = Executor::tensors(&target.model).filter(|info| OF_TARGET.contains(&&*info.name));
    let tensors = shared.chain(Executor::tensors(model));
    let graph = gguf_models::build_graph_for(purpose, model.metadata(), tensors)?;
    let own = model.index();
    let missing = OF_TARGET.iter().copied().filter(|name| !own.contains_key(name));
    executor(model, graph, options, target, &missing.collect::<Vec<_>>())
}

/// Returns MTP layers, of the target model itself or in a file of their own, as a draft model.
fn mtp(
    model: &Model,
    source: &str,
    options: &ExecutorOptions,
    target: &LoadedModel,
) -> Result<Draft, Error> {
    let tensors = Executor::tensors(&target.model).filter(|info| !info.name.starts_with("blk."));
    let tensors = tensors.chain(Executor::tensors(model));
    let graph = gguf_models::build_graph_for(&Purpose::Mtp, model.metadata(), tensors)?;
    let reads = graph.main().0.token_features_width();
    let names = graph.raw().weights.iter().map(|weight| weight.name.clone()).collect::<Vec<_>>();
    let shared = names.iter().map(String::as_str).filter(|name| !name.starts_with("blk."));
    let executor = executor(model, graph, options, target, &shared.collect::<Vec<_>>())?;
    if !executor.can_truncate() {
        let what = "its MTP layers have recurrent states, from which tokens cannot be removed";
        return Err(Error::request(UNUSABLE, what, "use a draft model"));
    }
    let (target_executor, width) = with_features(target, DraftFeatures::Mtp)?;
    if reads != Some(width) {
        let what = "its MTP layers were made for another target model";
        return Err(Error::request(UNUSABLE, what, "use those of this target model"));
    }
    let vocabulary = TargetVocabulary::with_equal_ids(vocabulary(target));
    Ok(of_features(executor, source, target_executor, vocabulary, Kind::Features))
}

/// Returns a draft model that reads features of the target model.
fn of_features(
    executor: Arc<Executor>,
    source: &str,
    target: Arc<Executor>,
    vocabulary: TargetVocabulary,
    kind: Kind,
) -> Draft {
    Draft { executor, trained_context: None, source: source.to_owned(), target, vocabulary, kind }
}

/// Creates the executor of a draft model that shares tensors of these names with its target model.
fn executor(
    model: &Model,
    graph: Graph,
    options: &ExecutorOptions,
    target: &LoadedModel,
    shared: &[&str],
) -> Result<Arc<Executor>, Error> {
    let memory = options.memory_limit.map(MemoryBudget::new);
    let memory = memory.unwrap_or_else(|| MemoryBudget::for_model(model));
    let executor = Executor::draft(model, graph, memory, &target.executor, shared)?;
    let executor = if options.no_repacking { executor.with_repacking(0) } else { executor };
    Ok(Arc::new(executor.with_repacking_after(REPACK_AFTER)))
}

/// Returns the target model as one that computes features, and their number per token.
fn with_features(
    target: &LoadedModel,
    features: DraftFeatures,
) -> Result<(Arc<Executor>, usize), Error> {
    let build = |purpose| {
        let tensors = Executor::tensors(&target.model);
        gguf_models::build_graph_for(&purpose, &target.metadata, tensors)
            .map_err(|fault| Error::Caller(Box::new(fault)))
    };
    if build(Purpose::Model).ok().as_ref() != Some(target.executor.graph()) {
        let what = "the target model runs by a stored graph, which has no features for drafts";
        return Err(Error::request(UNUSABLE, what, "omit --draft, or use --graph built"));
    }
    let executor = target.executor.with_graph(build(Purpose::Target(features))?)?;
    let width = executor.width(OutputKind::Features).unwrap_or(0);
    Ok((Arc::new(executor), width))
}

/// Returns the size of the vocabulary of the target model.
fn vocabulary(target: &LoadedModel) -> usize {
    let tokens = target.executor.width(OutputKind::Logits);
    tokens.or(target.executor.vocabulary_len()).unwrap_or(0)
}

/// Returns the vocabulary of the target model, with the ids that `d2t` lists for those of the draft model, if the file has it.
fn target_vocabulary(
    model: &Model,
    draft: &Executor,
    target: &LoadedModel,
) -> Result<TargetVocabulary, Error> {
    let (index, vocabulary) = (model.index(), vocabulary(target));
    let len = draft.width(OutputKind::Logits).unwrap_or(0);
    let Some(tensor) = index.get("d2t") else {
        return Ok(TargetVocabulary::with_equal_ids(vocabulary));
    };
    let info = &tensor.info;
    let fault = |message: String| {
        let finding = Finding::error(UNUSABLE, format!("`d2t`, its list of target ids, {message}"));
        Error::Caller(Box::new(finding.help("convert the draft model again")))
    };
    if info.tensor_type != TensorType::I64 || info.shape.iter().product::<u64>() != len as u64 {
        return Err(fault(format!("does not have {len} numbers of type I64")));
    }
    let mut bytes = vec![0; 8 * len];
    tensor.read_at(&mut bytes, 0)?;
    let mut ids = Vec::with_capacity(len);
    for number in bytes.as_chunks::<8>().0 {
        let id = i64::from_le_bytes(*number);
        let known = u32::try_from(id).ok().filter(|id| (*id as usize) < vocabulary);
        ids.push(known.ok_or_else(|| {
            fault(format!("names token {id}; the target model has {vocabulary} tokens"))
        })?);
    }
    Ok(TargetVocabulary { len: vocabulary, ids })
}

/// Whether a model has MTP layers.
fn has_mtp(model: &Model) -> bool {
    model.tensors().iter().any(|tensor| tensor.info.name.ends_with(".nextn.eh_proj.weight"))
}

/// Whether a model has MTP layers and no others.
fn has_only_mtp(model: &Model) -> bool {
    has_mtp(model) && !model.tensors().iter().any(|tensor| tensor.info.name.starts_with("blk.0."))
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
        other => other.in_file(source.as_ref()),
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
