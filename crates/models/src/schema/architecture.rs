//! What an architecture is: its keys, and its tensors with their shapes.

use std::rc::Rc;

use crate::schema::expression::{Scope, dimensions, evaluate};
use crate::schema::key_schema::Absent;
use gguf::Metadata;

/// The tables of one architecture.
#[derive(Debug)]
pub struct Architecture {
    /// As in `general.architecture`.
    pub name: &'static str,
    /// What to know about it; may be empty.
    pub note: &'static str,
    /// Keys without which the model cannot be run, without the prefix of the architecture.
    pub required: &'static [&'static [&'static str]],
    /// Keys that programs look for besides, without the prefix of the architecture.
    pub optional: &'static [&'static [&'static str]],
    /// What holds where a key is missing, without the prefix of the architecture, if it is not
    /// what the table of keys says.
    pub defaults: &'static [(&'static str, Absent)],
    /// Tensors outside of layers.
    pub tensors: &'static [Item],
    /// Layers.
    pub blocks: &'static [Block],
    /// True if files hold other tensors too, which the tables do not list.
    pub open: bool,
}

impl Architecture {
    /// An architecture without keys and tensors, to be completed.
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

/// Layers of one kind.
#[derive(Debug)]
pub struct Block {
    /// What stands before the layer's number, such as `blk.`.
    pub prefix: &'static str,
    /// Number of the first layer: an expression.
    pub from: &'static str,
    /// One past the number of the last layer: an expression.
    pub to: &'static str,
    /// Tensors of each layer.
    pub items: &'static [Item],
}

/// Tensors of an architecture, named and shaped.
///
/// Names within layers go without prefix and number. Shapes are expressions
/// (see [`evaluate`]) with commas between, the fastest dimension first; dimensions of 1 at the
/// end may be left out.
#[derive(Debug)]
pub enum Item {
    /// A tensor that the model needs: name, shape.
    Required(&'static str, &'static str),
    /// A tensor that the model may have: name, shape.
    Optional(&'static str, &'static str),
    /// A group.
    All(&'static [Item]),
    /// A group that may be missing, as a whole or in part.
    Maybe(&'static [Item]),
    /// Alternatives, of which one must be complete.
    OneOf(&'static [&'static [Item]]),
    /// A group that is there if the symbol's value is not zero.
    When(&'static str, &'static [Item]),
    /// A group that is there if the symbol's value is zero.
    Unless(&'static str, &'static [Item]),
}

/// What a file of an architecture is expected to hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expected {
    /// A tensor.
    Tensor {
        /// Its whole name.
        name: String,
        /// Its extents, fastest first; `None` for those that the metadata do not tell.
        shape: Vec<Option<u64>>,
        /// Whether the model needs it.
        need: Need,
    },
    /// Alternatives, of which one must be complete.
    OneOf(Vec<Vec<Expected>>),
}

/// Whether a model needs a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It does; within alternatives, the alternative does.
    Required,
    /// It can do without.
    Optional,
}

impl Architecture {
    /// The tensors of a model with these metadata, layer by layer.
    ///
    /// The keys are read with the prefix of this architecture. Lazy: metadata can claim any
    /// number of layers.
    pub fn tensors(&'static self, metadata: &Metadata) -> impl Iterator<Item = Expected> {
        let scope = Rc::new(Scope::new(metadata, self.name));
        let outside = self.outside(&scope);
        outside.into_iter().chain(self.blocks.iter().flat_map(move |block| {
            let scope = Rc::clone(&scope);
            block.layers(&scope).flat_map(move |layer| block.layer(&scope, layer))
        }))
    }

    /// The tensors outside of layers.
    pub fn outside(&self, scope: &Scope) -> Vec<Expected> {
        let mut out = Vec::new();
        let expand = Expand { scope, prefix: String::new(), layer: None };
        expand.items(self.tensors, Need::Required, &mut out);
        out
    }

    /// Names of all its tensors, with `{i}` for the number of a layer, and whether each is
    /// needed by every model of the architecture.
    pub fn tensor_names(&self) -> impl Iterator<Item = (String, Need)> {
        let mut names = Vec::new();
        collect(self.tensors, "", Need::Required, &mut names);
        for block in self.blocks {
            collect(block.items, &format!("{}{{i}}.", block.prefix), Need::Required, &mut names);
        }
        names.into_iter()
    }
}

impl Block {
    /// The numbers of its layers; none if the metadata do not tell.
    pub fn layers(&self, scope: &Scope) -> std::ops::Range<u64> {
        let bound = |expression| evaluate(expression, scope, None).unwrap_or(0);
        bound(self.from)..bound(self.to)
    }

    /// Whether each of its layers needs some tensor.
    pub fn is_needed(&self) -> bool {
        let mut names = Vec::new();
        collect(self.items, "", Need::Required, &mut names);
        names.iter().any(|(_, need)| *need == Need::Required)
    }

    /// The tensors of one layer.
    pub fn layer(&self, scope: &Scope, layer: u64) -> Vec<Expected> {
        let mut out = Vec::new();
        let prefix = format!("{}{layer}.", self.prefix);
        let expand = Expand { scope, prefix, layer: Some(layer) };
        expand.items(self.items, Need::Required, &mut out);
        out
    }
}

/// Everything that items need to become expected tensors.
struct Expand<'s> {
    scope: &'s Scope,
    prefix: String,
    layer: Option<u64>,
}

impl Expand<'_> {
    fn items(&self, items: &[Item], need: Need, out: &mut Vec<Expected>) {
        for item in items {
            match item {
                Item::Required(name, shape) => out.push(self.tensor(name, shape, need)),
                Item::Optional(name, shape) => out.push(self.tensor(name, shape, Need::Optional)),
                Item::All(items) => self.items(items, need, out),
                Item::Maybe(items) => self.items(items, Need::Optional, out),
                Item::OneOf(options) => {
                    let expand = |items: &&[Item]| {
                        let mut out = Vec::new();
                        self.items(items, need, &mut out);
                        out
                    };
                    out.push(Expected::OneOf(options.iter().map(expand).collect()));
                }
                Item::When(symbol, items) if self.value(symbol) > 0 => self.items(items, need, out),
                Item::Unless(symbol, items) if self.value(symbol) == 0 => {
                    self.items(items, need, out);
                }
                Item::When(..) | Item::Unless(..) => {}
            }
        }
    }

    fn tensor(&self, name: &str, shape: &str, need: Need) -> Expected {
        let shape = dimensions(shape, self.scope, self.layer);
        Expected::Tensor { name: format!("{}{name}", self.prefix), shape, need }
    }

    fn value(&self, symbol: &str) -> u64 {
        self.scope.value(symbol, self.layer).unwrap_or(0)
    }
}

fn collect(items: &[Item], prefix: &str, need: Need, out: &mut Vec<(String, Need)>) {
    for item in items {
        match item {
            Item::Required(name, _) => out.push((format!("{prefix}{name}"), need)),
            Item::Optional(name, _) => out.push((format!("{prefix}{name}"), Need::Optional)),
            Item::All(items) => collect(items, prefix, need, out),
            Item::Maybe(items) | Item::When(_, items) | Item::Unless(_, items) => {
                collect(items, prefix, Need::Optional, out);
            }
            Item::OneOf(options) => {
                options.iter().for_each(|items| collect(items, prefix, Need::Optional, out));
            }
        }
    }
}
