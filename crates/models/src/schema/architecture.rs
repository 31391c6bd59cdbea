//! Keys and tensors of an architecture.

use std::rc::Rc;

use gguf::Metadata;

use crate::schema::expression::{Scope, dimensions, evaluate};
use crate::schema::key_schema::DefaultValue;

/// Keys and tensors of one architecture.
#[derive(Debug)]
pub struct Architecture {
    /// Value of `general.architecture`.
    pub name: &'static str,
    /// Note for `docs/metadata.md`; may be empty.
    pub note: &'static str,
    /// Keys that loaders require, without the prefix of the architecture.
    pub required: &'static [&'static [&'static str]],
    /// Keys that loaders read if present, without the prefix of the architecture.
    pub optional: &'static [&'static [&'static str]],
    /// Defaults that differ from the table of keys, by key without the prefix of the architecture.
    pub defaults: &'static [(&'static str, DefaultValue)],
    /// Tensors outside of layers.
    pub tensors: &'static [Item],
    /// Layers.
    pub blocks: &'static [Block],
    /// Whether files may have tensors that the tables do not list.
    pub open: bool,
}

impl Architecture {
    /// Architecture without keys and tensors, for struct update syntax.
    pub(crate) const DEFAULT: Self = Self {
        name: "",
        note: "",
        required: &[],
        optional: &[],
        defaults: &[],
        tensors: &[],
        blocks: &[],
        open: false,
    };
}

/// Layers with the same name prefix.
#[derive(Debug)]
pub struct Block {
    /// Name prefix before the layer index, such as `blk.`.
    pub prefix: &'static str,
    /// Index of the first layer: an expression.
    pub from: &'static str,
    /// Index after the last layer: an expression.
    pub to: &'static str,
    /// Tensors of each layer.
    pub items: &'static [Item],
}

/// Tensor, or group of tensors, of an architecture.
///
/// Names within layers have no prefix and no layer index. Shapes are expressions (see [`evaluate`])
/// separated by commas, fastest dimension first; trailing dimensions of 1 may be omitted.
#[derive(Debug)]
pub enum Item {
    /// Required tensor: name, shape.
    Required(&'static str, &'static str),
    /// Optional tensor: name, shape.
    Optional(&'static str, &'static str),
    /// Group of items.
    All(&'static [Item]),
    /// Group of optional items.
    Maybe(&'static [Item]),
    /// Alternatives; one of them must be complete.
    OneOf(&'static [&'static [Item]]),
    /// Group that is present if the value of the symbol is not 0.
    When(&'static str, &'static [Item]),
    /// Group that is present if the value of the symbol is 0.
    Unless(&'static str, &'static [Item]),
}

/// Tensor that a file of an architecture is expected to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Tensor.
    Tensor {
        /// Full name.
        name: String,
        /// Dimensions, fastest first; `None` if the metadata do not determine one.
        shape: Vec<Option<u64>>,
        /// Whether the model requires the tensor.
        presence: Presence,
    },
    /// Alternatives; one of them must be complete.
    OneOf(Vec<Vec<Expected>>),
}

/// Whether a model requires a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Presence {
    /// Required; within alternatives, required by the alternative.
    Required,
    /// Optional.
    Optional,
}

impl Architecture {
    /// Returns the tensors of a model with these metadata, layer by layer.
    ///
    /// Keys are read with the prefix of this architecture. The iterator is lazy: untrusted metadata can
    /// claim any number of layers.
    pub fn tensors(&'static self, metadata: &Metadata) -> impl Iterator<Item = Expected> {
        let scope = Rc::new(Scope::new(metadata, self.name));
        let outside = self.outside(&scope);
        outside.into_iter().chain(self.blocks.iter().flat_map(move |block| {
            let scope = Rc::clone(&scope);
            block.layers(&scope).flat_map(move |layer| block.layer(&scope, layer))
        }))
    }

    /// Returns the tensors outside of layers.
    pub fn outside(&self, scope: &Scope) -> Vec<Expected> {
        let mut out = Vec::new();
        let expand = Expand { scope, prefix: String::new(), layer: None };
        expand.items(self.tensors, Presence::Required, &mut out);
        out
    }

    /// Returns the names of all tensors, with `{i}` for the layer index, and whether every model of the
    /// architecture requires them.
    pub fn tensor_names(&self) -> impl Iterator<Item = (String, Presence)> {
        let mut names = Vec::new();
        collect(self.tensors, "", Presence::Required, &mut names);
        for block in self.blocks {
            collect(
                block.items,
                &format!("{}{{i}}.", block.prefix),
                Presence::Required,
                &mut names,
            );
        }
        names.into_iter()
    }
}

impl Block {
    /// Returns the layer indices; an empty range if the metadata do not determine them.
    pub fn layers(&self, scope: &Scope) -> std::ops::Range<u64> {
        let bound = |expression| evaluate(expression, scope, None).unwrap_or(0);
        bound(self.from)..bound(self.to)
    }

    /// Returns true if each layer has a required tensor.
    pub fn is_needed(&self) -> bool {
        let mut names = Vec::new();
        collect(self.items, "", Presence::Required, &mut names);
        names.iter().any(|(_, presence)| *presence == Presence::Required)
    }

    /// Returns the tensors of one layer.
    pub fn layer(&self, scope: &Scope, layer: u64) -> Vec<Expected> {
        let mut out = Vec::new();
        let prefix = format!("{}{layer}.", self.prefix);
        let expand = Expand { scope, prefix, layer: Some(layer) };
        expand.items(self.items, Presence::Required, &mut out);
        out
    }
}

/// Context in which items are expanded to expected tensors.
struct Expand<'s> {
    scope: &'s Scope,
    prefix: String,
    layer: Option<u64>,
}

impl Expand<'_> {
    fn items(&self, items: &[Item], presence: Presence, out: &mut Vec<Expected>) {
        for item in items {
            match item {
                Item::Required(name, shape) => out.push(self.tensor(name, shape, presence)),
                Item::Optional(name, shape) => {
                    out.push(self.tensor(name, shape, Presence::Optional))
                }
                Item::All(items) => self.items(items, presence, out),
                Item::Maybe(items) => self.items(items, Presence::Optional, out),
                Item::OneOf(options) => {
                    let expand = |items: &&[Item]| {
                        let mut out = Vec::new();
                        self.items(items, presence, &mut out);
                        out
                    };
                    out.push(Expected::OneOf(options.iter().map(expand).collect()));
                }
                Item::When(symbol, items) if self.value(symbol) > 0 => {
                    self.items(items, presence, out)
                }
                Item::Unless(symbol, items) if self.value(symbol) == 0 => {
                    self.items(items, presence, out);
                }
                Item::When(..) | Item::Unless(..) => {}
            }
        }
    }

    fn tensor(&self, name: &str, shape: &str, presence: Presence) -> Expected {
        let shape = dimensions(shape, self.scope, self.layer);
        Expected::Tensor { name: format!("{}{name}", self.prefix), shape, presence }
    }

    fn value(&self, symbol: &str) -> u64 {
        self.scope.value(symbol, self.layer).unwrap_or(0)
    }
}

fn collect(items: &[Item], prefix: &str, presence: Presence, out: &mut Vec<(String, Presence)>) {
    for item in items {
        match item {
            Item::Required(name, _) => out.push((format!("{prefix}{name}"), presence)),
            Item::Optional(name, _) => out.push((format!("{prefix}{name}"), Presence::Optional)),
            Item::All(items) => collect(items, prefix, presence, out),
            Item::Maybe(items) | Item::When(_, items) | Item::Unless(_, items) => {
                collect(items, prefix, Presence::Optional, out);
            }
            Item::OneOf(options) => {
                options.iter().for_each(|items| collect(items, prefix, Presence::Optional, out));
            }
        }
    }
}
