//! Rules on what an architecture asks for: its keys and its tensors.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use gguf::{FileKind, Finding, Sink, Subject, TensorInfo};
use gguf_models::schema;
use gguf_models::schema::{
    Architecture, Block, Expected, HyperParameters, Presence, SYMBOLS, Scope,
};

use crate::rules::fit::Fit;
use crate::rules::grouped::Grouped;
use crate::rules::{projector, sizes};

/// More layers than any model has: tensors of a forged file are not looked at layer by layer.
const MOST_LAYERS: usize = 4096;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let kind = FileKind::of(subject.draft);
    let Some(name) = subject.draft.metadata.architecture() else {
        return if kind == FileKind::Model {
            unnamed(subject, sink)
        } else {
            ControlFlow::Continue(())
        };
    };
    if name == "clip" {
        return projector::check(subject, sink);
    }
    if !matches!(kind, FileKind::Model | FileKind::FirstShard) {
        return ControlFlow::Continue(());
    }
    let Some(architecture) = schema::architecture(name) else {
        return unknown(subject, name, sink);
    };
    let scope = Scope::new(&subject.draft.metadata, name);
    keys(subject, architecture, sink)?;
    sizes::check(subject, architecture, &scope, sink)?;
    // What a shard lacks is in the others.
    if kind == FileKind::Model { tensors(subject, sink) } else { ControlFlow::Continue(()) }
}

/// Compares the tensors of a whole model with what its architecture asks for, if the tables know it.
pub(crate) fn tensors(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let name = subject.draft.metadata.architecture();
    let Some(architecture) = name.and_then(schema::architecture) else {
        return ControlFlow::Continue(());
    };
    let scope = Scope::new(&subject.draft.metadata, architecture.name);
    let mut check = Check {
        subject,
        architecture,
        trunk: !guesses_only(subject, &scope),
        index: subject.draft.tensors.iter().map(|tensor| &*tensor.name).zip(0..).collect(),
        expected: vec![false; subject.draft.tensors.len()],
        strange: false,
        found: Grouped::default(),
        sink,
    };
    check.tensors(&scope)
}

/// A model whose tensors are those of an architecture that nothing names. Of other files, which no
/// table knows, the rules on headers say enough.
fn unnamed(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let best = Fit::best(&Fit::names(&subject.draft.tensors));
    let Some((_, names)) = best.filter(|(fit, _)| fit.strange == 0) else {
        return ControlFlow::Continue(());
    };
    let message = format!("the tensors are those of {names}, but general.architecture is missing");
    sink.report(
        Finding::error("key-missing", message)
            .key("general.architecture")
            .help("loaders reject the model; set general.architecture"),
    )
}

fn unknown(subject: &Subject, name: &str, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut message = format!("unknown architecture {name:?}");
    let best = Fit::best(&Fit::names(&subject.draft.tensors));
    if let Some((_, names)) = best.filter(|(fit, _)| fit.strange == 0) {
        message += &format!("; its tensors are those of {names}");
    }
    sink.report(
        Finding::info("architecture-unknown", message)
            .key("general.architecture")
            .at(subject.value_at("general.architecture"))
            .help("its keys and tensors were not checked"),
    )
}

fn keys(subject: &Subject, architecture: &Architecture, sink: &mut dyn Sink) -> ControlFlow<()> {
    let hparams = HyperParameters::new(&subject.draft.metadata, architecture.name);
    for key in architecture.required.iter().copied().flatten() {
        if hparams.value(key).is_none() {
            sink.report(hparams.missing(key))?;
        }
    }
    ControlFlow::Continue(())
}

/// Returns whether the file holds only multi-token prediction (MTP) layers, with the keys of the whole model.
fn guesses_only(subject: &Subject, scope: &Scope) -> bool {
    scope.value("n_mtp", None).is_some_and(|next| next > 0)
        && subject.draft.tensors.iter().all(|tensor| !tensor.name.starts_with("blk.0."))
}

/// Comparing the tensors of a file with what its architecture asks for.
struct Check<'s, 'd> {
    subject: &'s Subject<'d>,
    architecture: &'static Architecture,
    /// False for a file that holds only MTP layers.
    trunk: bool,
    index: HashMap<&'d str, usize>,
    /// Per tensor of the file: whether the architecture knows it.
    expected: Vec<bool>,
    /// Whether a tensor is missing or unexpected.
    strange: bool,
    /// What is wrong with single tensors.
    found: Grouped,
    sink: &'s mut dyn Sink,
}

impl Check<'_, '_> {
    fn tensors(&mut self, scope: &Scope) -> ControlFlow<()> {
        for expected in self.architecture.outside(scope) {
            self.one(&expected);
        }
        for block in self.architecture.blocks {
            // Metadata can claim any number of layers: look at those of which something is there.
            let layers = block.layers(scope);
            let present = self.layers_present(block.prefix);
            for &layer in present.iter().filter(|n| layers.contains(n)).take(MOST_LAYERS) {
                for expected in block.layer(scope, layer) {
                    self.one(&expected);
                }
            }
        }
        std::mem::take(&mut self.found).report(self.sink)?;
        self.layer_counts(scope)?;
        self.unexpected();
        std::mem::take(&mut self.found).report(self.sink)?;
        if self.strange { self.other_architecture() } else { ControlFlow::Continue(()) }
    }

    /// The numbers of the layers that some tensor of the file belongs to.
    fn layers_present(&self, prefix: &str) -> BTreeSet<u64> {
        let tensors = self.subject.draft.tensors.iter();
        tensors.filter_map(|tensor| layer_of(&tensor.name, prefix)).collect()
    }

    fn one(&mut self, expected: &Expected) {
        match expected {
            Expected::Tensor { name, shape, presence } => match self.find(name) {
                Some(i) => self.shape(i, shape, *presence),
                None if *presence == Presence::Required => self.missing(name),
                None => {}
            },
            Expected::OneOf(options) => self.one_of(options),
        }
    }

    fn one_of(&mut self, options: &[Vec<Expected>]) {
        let needed = |option: &[Expected], present: bool| {
            let names = option.iter().filter_map(|expected| match expected {
                Expected::Tensor { name, presence: Presence::Required, .. } => Some(name.as_str()),
                _ => None,
            });
            names.filter(|name| self.index.contains_key(name) == present).count()
        };
        // The alternative meant is one of which something is there, and that lacks least.
        let meant =
            options.iter().min_by_key(|option| (needed(option, true) == 0, needed(option, false)));
        for option in options {
            for expected in option {
                match expected {
                    Expected::Tensor { name, .. } if self.find(name).is_some() => {
                        self.one(expected);
                    }
                    _ if meant.is_some_and(|meant| std::ptr::eq(meant, option)) => {
                        self.one(expected);
                    }
                    _ => {}
                }
            }
        }
    }

    fn find(&mut self, name: &str) -> Option<usize> {
        let i = *self.index.get(name)?;
        if let Some(expected) = self.expected.get_mut(i) {
            *expected = true;
        }
        Some(i)
    }

    fn missing(&mut self, name: &str) {
        if !self.trunk {
            return;
        }
        self.strange = true;
        let message = format!("{} requires this tensor", self.architecture.name);
        self.found.add(
            Finding::error("tensor-missing", message)
                .tensor(name)
                .help("loaders reject the model without it; convert it again"),
        );
    }

    fn shape(&mut self, i: usize, shape: &[Option<u64>], presence: Presence) {
        let Some(tensor) = self.subject.draft.tensors.get(i) else { return };
        // Where the tables know a part of the tensors, what others share may differ in shape.
        if fits(tensor, shape) || (self.architecture.open && presence == Presence::Optional) {
            return;
        }
        let dims: Vec<_> = shape
            .iter()
            .map(|dim| dim.map_or_else(|| "?".to_owned(), |dim| dim.to_string()))
            .collect();
        let message = format!("has shape {} instead of [{}]", tensor.shape, dims.join(", "));
        self.found.add(
            Finding::error("tensor-shape", message)
                .tensor(&*tensor.name)
                .at(self.subject.tensor_at(i))
                .help("metadata and tensor contradict each other; loaders reject that"),
        );
    }

    /// Compares the number of layers claimed with those present.
    fn layer_counts(&mut self, scope: &Scope) -> ControlFlow<()> {
        let mut seen = HashSet::new();
        for block in self.architecture.blocks {
            if !seen.insert(block.prefix) {
                continue;
            }
            let (claimed, key) = self.layers_claimed(block, scope);
            let present = self.layers_present(block.prefix);
            let Some(claimed) = claimed else {
                // The key that is missing is told; of layers there is nothing to say without it.
                self.take_layers(block.prefix, 0);
                continue;
            };
            let count = present.len() as u64;
            let beyond = present.last().is_some_and(|&last| last >= claimed);
            if self.least_layers(block, scope) <= count && !beyond {
                continue;
            }
            let message = format!("claims {claimed} layers; the file has tensors of {count}");
            let finding = Finding::error("layer-count", message)
                .at(self.subject.value_at(&key))
                .key(key)
                .help("the key is wrong or tensors are missing");
            self.sink.report(finding)?;
            // Said once is enough.
            self.take_layers(block.prefix, claimed);
        }
        ControlFlow::Continue(())
    }

    /// Lets the tensors of layers from `first` on pass.
    fn take_layers(&mut self, prefix: &str, first: u64) {
        for (tensor, expected) in self.subject.draft.tensors.iter().zip(&mut self.expected) {
            *expected |= layer_of(&tensor.name, prefix).is_some_and(|n| n >= first);
        }
    }

    /// The number of layers with a prefix that the metadata claim, and the key that says so.
    fn layers_claimed(&self, block: &Block, scope: &Scope) -> (Option<u64>, String) {
        let mut blocks = self.architecture.blocks.iter();
        let last = blocks.rfind(|other| other.prefix == block.prefix).unwrap_or(block).to;
        let symbol = SYMBOLS.iter().find(|symbol| symbol.name == last);
        let key = symbol.and_then(|symbol| symbol.source.key()).unwrap_or("{arch}.block_count");
        (scope.value(last, None), key.replace("{arch}", self.architecture.name))
    }

    /// The number of layers without those that may be missing altogether.
    fn least_layers(&self, block: &Block, scope: &Scope) -> u64 {
        let same = self.architecture.blocks.iter().filter(|other| other.prefix == block.prefix);
        let needed = same.filter(|block| self.trunk && block.is_needed());
        needed.map(|block| block.layers(scope).end).max().unwrap_or(0)
    }

    fn unexpected(&mut self) {
        if self.architecture.open {
            return;
        }
        for (i, (tensor, expected)) in
            self.subject.draft.tensors.iter().zip(&self.expected).enumerate()
        {
            // Scales may go with the weights of any architecture.
            let scale = tensor.name.ends_with(".scale") || tensor.name.ends_with(".input_scale");
            if *expected || scale {
                continue;
            }
            self.strange = true;
            let message = format!("{} has no such tensor", self.architecture.name);
            self.found.add(
                Finding::warning("tensor-unexpected", message)
                    .tensor(&*tensor.name)
                    .at(self.subject.tensor_at(i))
                    .help("llama.cpp rejects a model with unused tensors"),
            );
        }
    }

    fn other_architecture(&mut self) -> ControlFlow<()> {
        let names = Fit::names(&self.subject.draft.tensors);
        let own = Fit::of(self.architecture, &names);
        let Some((_, others)) = Fit::best(&names).filter(|(fit, _)| fit.strange < own.strange)
        else {
            return ControlFlow::Continue(());
        };
        let message = format!("the tensors fit {others} better than {}", self.architecture.name);
        self.sink.report(
            Finding::info("architecture-other", message)
                .key("general.architecture")
                .at(self.subject.value_at("general.architecture")),
        )
    }
}

/// Missing dimensions are 1.
fn fits(tensor: &TensorInfo, shape: &[Option<u64>]) -> bool {
    let dims = tensor.shape.iter().copied().map(Some).chain(std::iter::repeat(Some(1)));
    let wanted = shape.iter().copied().chain(std::iter::repeat(Some(1)));
    let longest = tensor.shape.len().max(shape.len());
    dims.zip(wanted).take(longest).all(|(dim, wanted)| wanted.is_none() || dim == wanted)
}

/// The number of the layer that a tensor belongs to.
fn layer_of(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.split('.').next()?.parse().ok()
}
