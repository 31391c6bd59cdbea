//! Models beside the one that they were made of, or beside what it predicted.

use std::collections::BTreeMap;
use std::path::Path;

use gguf_eval::part::{Divergences, Part, Tally};
use gguf_eval::{Comparison, Divergence, LogitsFile, LogitsWriter, Reference, Subject, Windows};
use gguf_store::Progress;
use gguf_tokenizer::Tokenizer;

use super::keep::{asked, digest_of_text};
use super::subject::Opened;
use super::{Keeper, Save, Task};
use crate::Error;
use crate::run::ExecutorOptions;
use gguf_store::digest::sha256;

/// What models are compared with.
#[derive(Clone, Copy)]
pub enum Against<'a> {
    /// The model that a word names: a file, or the directory of a checkpoint.
    Model(&'a str),
    /// A file of logits of llama.cpp or of ours, which has the text in it.
    Logits(&'a Path),
}

impl Against<'_> {
    /// What the user calls it.
    pub fn name(&self) -> String {
        match self {
            Self::Model(word) => (*word).to_owned(),
            Self::Logits(path) => path.display().to_string(),
        }
    }
}

/// What is compared, and how.
#[derive(Clone, Copy)]
pub struct Compare<'c> {
    /// What models are compared with.
    pub against: Against<'c>,
    /// Words for the models.
    pub models: &'c [String],
    /// How they are run.
    pub options: &'c ExecutorOptions,
    /// The text, and how it is cut; with a file of logits only the number of windows counts.
    pub task: &'c Task,
    /// How many of the worst predictions are kept of each model.
    pub worst: usize,
    /// Where the logits of the reference go.
    pub save: Option<Save<'c>>,
}

/// How far models are from a reference.
#[derive(Clone, Debug, Default)]
pub struct Compared {
    /// What was found of each model.
    pub models: Vec<Divergence>,
    /// What the tokens stand for that are named among the worst predictions.
    pub tokens: BTreeMap<u32, Vec<u8>>,
}

impl Compared {
    /// What tokens stand for together.
    pub fn text(&self, ids: &[u32]) -> String {
        let bytes = ids.iter().filter_map(|id| self.tokens.get(id)).flatten();
        String::from_utf8_lossy(&bytes.copied().collect::<Vec<_>>()).into_owned()
    }

    /// What a part says.
    pub(super) fn of(part: &Part) -> Self {
        let models = totals(part).into_iter().cloned().collect();
        Self { models, tokens: part.tokens.clone() }
    }
}

/// How far models are from a reference. `each` gets what is known after each window.
///
/// # Errors
/// `vocabulary-differs` if a model has other tokens than the reference; as [`super::perplexity`], and as
/// [`LogitsFile::open`].
pub fn divergence(
    compare: &Compare<'_>,
    keeper: &mut Keeper,
    each: &mut dyn FnMut(&[&Divergence]),
    progress: &dyn Progress,
) -> Result<Compared, Error> {
    let Compare { options, task, worst, .. } = *compare;
    let original = Original::open(compare, progress)?;
    let mut models: Vec<Opened> = Vec::with_capacity(compare.models.len());
    for word in compare.models {
        let model = Opened::open(word, options, progress)?;
        // Of a file of logits nothing but the number of tokens is known.
        if let Some(known) = original.model().or(models.first()) {
            known.require_vocabulary(&model)?;
        }
        models.push(model);
    }
    let Some(known) = original.model().or(models.first()) else { return Ok(Compared::default()) };
    let windows = original.windows(known, task)?;
    let mut asked = asked("divergence", digest_of_text(task), options, task)?;
    asked.insert("number of the worst predictions".to_owned(), worst.to_string());
    if keeper.has_file() {
        asked.insert("reference".to_owned(), original.digest()?);
    }
    let empty = Tally::Divergence(Divergences::default());
    let (first, rest) =
        keeper.begin(asked, &models.iter().collect::<Vec<_>>(), windows.count(), &empty)?;
    keeper.part().reference = Some(compare.against.name());
    let windows = windows.only(rest);
    let save = match (compare.save, original.model()) {
        (Some(save), Some(model)) => Some(save.begin(model, &windows)?),
        _ => None,
    };
    let subjects: Vec<Subject> = models.iter().map(Opened::subject).collect();
    let comparison = Comparison {
        reference: original.reference(),
        models: &subjects,
        windows: &windows,
        options: task.run,
        worst,
        save: save.as_ref(),
    };
    let readers = subjects.len() + usize::from(original.model().is_some());
    progress.begin("reading", (windows.count() * (windows.window_len() - 1) * readers) as u64);
    let mut of_window = |found: Vec<Divergence>| {
        for (number, found) in found.iter().enumerate() {
            if let Tally::Divergence(all) = &mut keeper.portion(first + number).tally {
                all.add(found);
            }
        }
        name_tokens(keeper.part(), &known.tokenizer);
        each(&totals(keeper.part()));
        keeper.write(false)
    };
    let result = comparison.run(&mut of_window, progress);
    keeper.end(result)?;
    save.map_or(Ok(()), LogitsWriter::commit)?;
    Ok(Compared::of(keeper.part()))
}

/// What is known of each model.
fn totals(part: &Part) -> Vec<&Divergence> {
    let of_model = part.portions.iter().filter_map(|portion| match &portion.tally {
        Tally::Divergence(all) => Some(all.total()),
        _ => None,
    });
    of_model.collect()
}

/// Keeps what the tokens stand for that are named among the worst predictions.
fn name_tokens(part: &mut Part, tokenizer: &Tokenizer) {
    let mut ids = Vec::new();
    for miss in totals(part).iter().flat_map(|model| model.worst.misses()) {
        ids.extend([miss.came.id, miss.by_reference.id, miss.by_model.id]);
        ids.extend(&miss.before);
    }
    for id in ids {
        let bytes = || tokenizer.token_bytes(id).unwrap_or_default();
        part.tokens.entry(id).or_insert_with(bytes);
    }
}

/// What models are compared with, open.
enum Original {
    Model(Box<Opened>, Subject),
    Logits(LogitsFile),
}

impl Original {
    fn open(compare: &Compare<'_>, progress: &dyn Progress) -> Result<Self, Error> {
        Ok(match compare.against {
            Against::Model(word) => {
                let model = Opened::open(word, compare.options, progress)?;
                let subject = model.subject();
                Self::Model(Box::new(model), subject)
            }
            Against::Logits(path) => Self::Logits(LogitsFile::open(path)?),
        })
    }

    fn model(&self) -> Option<&Opened> {
        match self {
            Self::Model(model, _) => Some(model),
            Self::Logits(_) => None,
        }
    }

    fn reference(&self) -> Reference<'_> {
        match self {
            Self::Model(_, subject) => Reference::Model(subject),
            Self::Logits(file) => Reference::Logits(file),
        }
    }

    /// The text in windows, as a model with these tokens reads them.
    fn windows(&self, known: &Opened, task: &Task) -> Result<Windows, Error> {
        match self {
            Self::Model(..) => known.windows(task),
            Self::Logits(file) => file.windows(known.first(), task.cut.windows),
        }
    }

    /// By which other machines know it.
    fn digest(&self) -> Result<String, Error> {
        match self {
            Self::Model(model, _) => model.digest(),
            Self::Logits(file) => Ok(sha256(&file.sample()?)),
        }
    }
}
