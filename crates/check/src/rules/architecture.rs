//! Rules on the keys and tensors that an architecture requires.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;

use gguf::{FileKind, Finding, Sink, Subject, TensorInfo};
use gguf_models::schema::{
    Architecture, Block, Expected, HyperParameters, Presence, SYMBOLS, Scope,
};
use gguf_models::{ollama, schema};

use crate::rules::detect::Match;
use crate::rules::grouped_findings::GroupedFindings;
use crate::rules::{hyper_parameters, projector};

/// Limit on checked layers, higher than any model has: a forged file must not cost more.
const MAX_LAYERS: usize = 4096;

pub(super) fn check(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let kind = FileKind::detect(subject.header);
    let Some(name) = subject.header.metadata.architecture() else {
        return if kind == FileKind::Model {
            without_architecture(subject, sink)
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
    let names = subject.header.tensors.iter().map(|tensor| &*tensor.name);
    if let Some(sign) = ollama::sign(&subject.header.metadata, names) {
        let message = format!("the file was written for Ollama's own engine: {sign}");
        return sink.report(
            Finding::error(ollama::CODE, message).key("general.architecture").help(ollama::HELP),
        );
    }
    let Some(architecture) = schema::architecture(name) else {
        return unknown_architecture(subject, name, sink);
    };
    let scope = Scope::new(&subject.header.metadata, name);
    keys(subject, architecture, sink)?;
    hyper_parameters::check(subject, architecture, &scope, sink)?;
    // The other shards have the remaining tensors.
    if kind == FileKind::Model { tensors(subject, sink) } else { ControlFlow::Continue(()) }
}

/// Compares the tensors of a complete model with its architecture, if the schema has it.
pub(crate) fn tensors(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let name = subject.header.metadata.architecture();
    let Some(architecture) = name.and_then(schema::architecture) else {
        return ControlFlow::Continue(());
    };
    let scope = Scope::new(&subject.header.metadata, architecture.name);
    let mut check = Check {
        subject,
        architecture,
        has_main_layers: !has_only_mtp_layers(subject, &scope),
        index: subject.header.tensors.iter().map(|tensor| &*tensor.name).zip(0..).collect(),
        expected: vec![false; subject.header.tensors.len()],
        has_mismatch: false,
        found: GroupedFindings::default(),
        sink,
    };
    check.tensors(&scope)
}

/// Reports a missing architecture that the tensors identify. The rules on headers report other files.
fn without_architecture(subject: &Subject, sink: &mut dyn Sink) -> ControlFlow<()> {
    let best = Match::best(&Match::names(&subject.header.tensors));
    let Some((_, names)) = best.filter(|(fit, _)| fit.mismatches == 0) else {
        return ControlFlow::Continue(());
    };
    let message = format!("the tensors are those of {names}, but general.architecture is missing");
    sink.report(
        Finding::error("key-missing", message)
            .key("general.architecture")
            .help("loaders reject the model; set general.architecture"),
    )
}

fn unknown_architecture(subject: &Subject, name: &str, sink: &mut dyn Sink) -> ControlFlow<()> {
    let mut message = format!("unknown architecture {name:?}");
    let best = Match::best(&Match::names(&subject.header.tensors));
    if let Some((_, names)) = best.filter(|(fit, _)| fit.mismatches == 0) {
        message += &format!("; its tensors are those of {names}");
    }
    sink.report(
        Finding::note("architecture-unknown", message)
            .key("general.architecture")
            .at(subject.value_at("general.architecture"))
            .help("its keys and tensors were not checked"),
    )
}

fn keys(subject: &Subject, architecture: &Architecture, sink: &mut dyn Sink) -> ControlFlow<()> {
    let hparams = HyperParameters::new(&subject.header.metadata, architecture.name);
    for key in architecture.required.iter().copied().flatten() {
        if hparams.value(key).is_none() {
            sink.report(hparams.missing(key))?;
        }
    }
    ControlFlow::Continue(())
}

/// Returns true for a file with only the MTP layers of a model, which has the keys of the whole model.
fn has_only_mtp_layers(subject: &Subject, scope: &Scope) -> bool {
    scope.value("n_mtp", None).is_some_and(|count| count > 0)
        && subject.header.tensors.iter().all(|tensor| !tensor.name.starts_with("blk.0."))
}

/// Comparison of the tensors of a file with its architecture.
struct Check<'s, 'd> {
    subject: &'s Subject<'d>,
    architecture: &'static Architecture,
    /// False for a file with only MTP layers.
    has_main_layers: bool,
    index: HashMap<&'d str, usize>,
    /// Per tensor of the file, whether the architecture has it.
    expected: Vec<bool>,
    /// Whether a tensor is missing or unexpected.
    has_mismatch: bool,
    /// Findings about single tensors.
    found: GroupedFindings,
    sink: &'s mut dyn Sink,
}

impl Check<'_, '_> {
    fn tensors(&mut self, scope: &Scope) -> ControlFlow<()> {
        for expected in self.architecture.outside(scope) {
            self.check_expected(&expected);
        }
        for block in self.architecture.blocks {
            // Metadata can claim any number of layers: check only layers with tensors in the file.
            let layers = block.layers(scope);
            let present = self.layers_present(block.prefix);
            for &layer in present.iter().filter(|n| layers.contains(n)).take(MAX_LAYERS) {
                for expected in block.layer(scope, layer) {
                    self.check_expected(&expected);
                }
            }
        }
        std::mem::take(&mut self.found).report(self.sink)?;
        self.layer_counts(scope)?;
        self.unexpected();
        std::mem::take(&mut self.found).report(self.sink)?;
        if self.has_mismatch { self.other_architecture() } else { ControlFlow::Continue(()) }
    }

    /// Returns the indices of the layers that have tensors in the file.
    fn layers_present(&self, prefix: &str) -> BTreeSet<u64> {
        let tensors = self.subject.header.tensors.iter();
        tensors.filter_map(|tensor| layer_of(&tensor.name, prefix)).collect()
    }

    fn check_expected(&mut self, expected: &Expected) {
        match expected {
            Expected::Tensor { name, shape, presence } => match self.find(name) {
                Some(i) => self.shape(i, shape, *presence),
                None if *presence == Presence::Required => self.missing(name),
                None => {}
            },
            Expected::OneOf(options) => self.check_alternatives(options),
        }
    }

    fn check_alternatives(&mut self, options: &[Vec<Expected>]) {
        let needed = |option: &[Expected], present: bool| {
            let names = option.iter().filter_map(|expected| match expected {
                Expected::Tensor { name, presence: Presence::Required, .. } => Some(name.as_str()),
                _ => None,
            });
            names.filter(|name| self.index.contains_key(name) == present).count()
        };
        // The intended alternative has a tensor in the file and lacks the fewest.
        let intended =
            options.iter().min_by_key(|option| (needed(option, true) == 0, needed(option, false)));
        for option in options {
            for expected in option {
                match expected {
                    Expected::Tensor { name, .. } if self.find(name).is_some() => {
                        self.check_expected(expected);
                    }
                    _ if intended.is_some_and(|intended| std::ptr::eq(intended, option)) => {
                        self.check_expected(expected);
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
        if !self.has_main_layers {
            return;
        }
        self.has_mismatch = true;
        let message = format!("{} requires this tensor", self.architecture.name);
        self.found.add(
            Finding::error("tensor-missing", message)
                .tensor(name)
                .help("loaders reject the model without it; convert it again"),
        );
    }

    fn shape(&mut self, i: usize, shape: &[Option<u64>], presence: Presence) {
        let Some(tensor) = self.subject.header.tensors.get(i) else { return };
        // In an open architecture, optional tensors may have other shapes.
        if has_shape(tensor, shape) || (self.architecture.open && presence == Presence::Optional) {
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
            let (claimed, key) = self.claimed_layers(block, scope);
            let present = self.layers_present(block.prefix);
            let Some(claimed) = claimed else {
                // The key that is missing is told; of layers there is nothing to say without it.
                self.expect_layers(block.prefix, 0);
                continue;
            };
            let count = present.len() as u64;
            let beyond = present.last().is_some_and(|&last| last >= claimed);
            if self.min_layers(block, scope) <= count && !beyond {
                continue;
            }
            let message = format!("claims {claimed} layers; the file has tensors of {count}");
            let finding = Finding::error("layer-count", message)
                .at(self.subject.value_at(&key))
                .key(key)
                .help("the key is wrong or tensors are missing");
            self.sink.report(finding)?;
            // One finding is enough.
            self.expect_layers(block.prefix, claimed);
        }
        ControlFlow::Continue(())
    }

    /// Marks the tensors of layers from `first` on as expected.
    fn expect_layers(&mut self, prefix: &str, first: u64) {
        for (tensor, expected) in self.subject.header.tensors.iter().zip(&mut self.expected) {
            *expected |= layer_of(&tensor.name, prefix).is_some_and(|n| n >= first);
        }
    }

    /// Returns the number of layers with a prefix according to the metadata, and the key with the number.
    fn claimed_layers(&self, block: &Block, scope: &Scope) -> (Option<u64>, String) {
        let mut blocks = self.architecture.blocks.iter();
        let last = blocks.rfind(|other| other.prefix == block.prefix).unwrap_or(block).to;
        let symbol = SYMBOLS.iter().find(|symbol| symbol.name == last);
        let key = symbol.and_then(|symbol| symbol.source.key()).unwrap_or("{arch}.block_count");
        (scope.value(last, None), key.replace("{arch}", self.architecture.name))
    }

    /// Returns the number of layers, without trailing layers that may be missing.
    fn min_layers(&self, block: &Block, scope: &Scope) -> u64 {
        let same = self.architecture.blocks.iter().filter(|other| other.prefix == block.prefix);
        let needed = same.filter(|block| self.has_main_layers && block.is_needed());
        needed.map(|block| block.layers(scope).end).max().unwrap_or(0)
    }

    fn unexpected(&mut self) {
        if self.architecture.open {
            return;
        }
        for (i, (tensor, expected)) in
            self.subject.header.tensors.iter().zip(&self.expected).enumerate()
        {
            // Weights of any architecture can have scales.
            let scale = tensor.name.ends_with(".scale") || tensor.name.ends_with(".input_scale");
            if *expected || scale {
                continue;
            }
            self.has_mismatch = true;
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
        let names = Match::names(&self.subject.header.tensors);
        let own = Match::of(self.architecture, &names);
        let Some((_, others)) =
            Match::best(&names).filter(|(fit, _)| fit.mismatches < own.mismatches)
        else {
            return ControlFlow::Continue(());
        };
        let message = format!("the tensors fit {others} better than {}", self.architecture.name);
        self.sink.report(
            Finding::note("architecture-other", message)
                .key("general.architecture")
                .at(self.subject.value_at("general.architecture")),
        )
    }
}

/// Returns true if a tensor has this shape; missing dimensions are 1.
fn has_shape(tensor: &TensorInfo, shape: &[Option<u64>]) -> bool {
    let dims = tensor.shape.iter().copied().map(Some).chain(std::iter::repeat(Some(1)));
    let expected_dim = shape.iter().copied().chain(std::iter::repeat(Some(1)));
    let longest = tensor.shape.len().max(shape.len());
    dims.zip(expected_dim)
        .take(longest)
        .all(|(dim, expected_dim)| expected_dim.is_none() || dim == expected_dim)
}

/// Returns the index of the layer that a tensor belongs to.
fn layer_of(name: &str, prefix: &str) -> Option<u64> {
    name.strip_prefix(prefix)?.split('.').next()?.parse().ok()
}
