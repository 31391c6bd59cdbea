//! Assignment of types to the tensors of a model, identical to the presets of llama.cpp's
//! quantizer.
//!
//! [`plan`] considers names, shapes and a few facts about the model, never weights.
//!
//! ```
//! use gguf::TensorType;
//! use gguf_quantize::recipe::{Preset, Model, RecipeOptions, Target, TensorDesc, plan};
//!
//! let model = Model::from_keys("llama", |key| (key == "llama.block_count").then_some(32));
//! let down = TensorDesc {
//!     name: "blk.0.ffn_down.weight",
//!     shape: &[11008, 4096],
//!     ty: TensorType::F16,
//! };
//! let plan = plan(Target::Preset(Preset::Q4_K_M), &model, &[down], &RecipeOptions::default())?;
//! assert_eq!(plan.tensors[0].target, TensorType::Q6_K);
//! # Ok::<(), gguf::Error>(())
//! ```

mod category;
mod model_properties;
mod name_pattern;
mod preset;
mod rules;
mod type_file;
mod unmatched;

use std::fmt;

pub use category::Category;
use gguf::{Error, Status, TensorType, suggest};
pub use model_properties::Model;
pub use name_pattern::{InvalidPattern, NamePattern};
pub use preset::{Preset, UnknownPreset};
use rules::Rules;
pub use type_file::{parse_entry, parse_type_file, write_type_file};

/// Requested quantization of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A preset.
    Preset(Preset),
    /// One type for all tensors that can be quantized.
    Type(TensorType),
    /// The existing type of every tensor.
    Copy,
}

impl Target {
    /// Returns the value of `general.file_type` for the output; `None` if it is unchanged or no
    /// preset has the name of the type.
    pub fn file_type(self) -> Option<Preset> {
        match self {
            Self::Preset(preset) => Some(preset),
            Self::Type(TensorType::MXFP4) => Some(Preset::MXFP4_MOE),
            Self::Type(ty) => ty.name().parse().ok(),
            Self::Copy => None,
        }
    }

    /// Returns the type of tensors without other settings; `None` to keep the existing type.
    fn default_type(self) -> Option<TensorType> {
        match self {
            Self::Preset(preset) => Some(preset.default_type()),
            Self::Type(ty) => Some(ty),
            Self::Copy => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Preset(preset) => preset.fmt(f),
            Self::Type(ty) => ty.fmt(f),
            Self::Copy => f.pad("COPY"),
        }
    }
}

/// A word that is not a [`Target`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a known type; {hint}", hint = hint(.0))]
pub struct UnknownTarget(pub String);

impl UnknownTarget {
    /// Returns the targets with the most similar spelling, if any.
    pub fn nearest(&self) -> Vec<&'static str> {
        nearest(&self.0)
    }
}

fn nearest(word: &str) -> Vec<&'static str> {
    suggest::nearest(word, preset::known_names().chain(["COPY"]))
}

/// Suggests the intended target, or lists all targets.
fn hint(word: &str) -> String {
    match &nearest(word)[..] {
        [] => format!("supported: {} COPY", preset::known_names().collect::<Vec<_>>().join(" ")),
        near => suggest::did_you_mean(near),
    }
}

impl std::str::FromStr for Target {
    type Err = UnknownTarget;

    /// Parses, case-insensitively, a preset by name, alias or number, `COPY`, or a tensor type.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if s.eq_ignore_ascii_case("COPY") {
            return Ok(Self::Copy);
        }
        let ty = || s.parse().ok().filter(is_for_weights).map(Self::Type);
        s.parse().ok().map(Self::Preset).or_else(ty).ok_or_else(|| UnknownTarget(s.to_owned()))
    }
}

/// Whether files store weights in this type.
fn is_for_weights(ty: &TensorType) -> bool {
    ty.traits().is_some_and(|t| t.status == Status::Current) && !ty.is_integer()
}

/// A source tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorDesc<'a> {
    /// Name in the output, such as `blk.0.attn_q.weight`.
    pub name: &'a str,
    /// Shape, fastest dimension first.
    pub shape: &'a [u64],
    /// Current type.
    pub ty: TensorType,
}

impl TensorDesc<'_> {
    /// Number of elements per row.
    fn columns(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// Returns N of a name that starts with `blk.N`.
    fn layer(&self) -> Option<u64> {
        let rest = self.name.strip_prefix("blk.")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        // No model has more than 2^32 layers; the bound avoids overflow.
        rest[..digits].parse::<u32>().ok().map(u64::from)
    }
}

/// Settings that override the target.
#[derive(Clone, Debug, Default)]
pub struct RecipeOptions {
    /// Whether all tensors get the default type of the preset.
    pub pure: bool,
    /// Whether `output.weight` keeps its type.
    pub leave_output_tensor: bool,
    /// Type of the output projection, or under a preset, of tied embeddings.
    pub output_tensor_type: Option<TensorType>,
    /// Type of the token embeddings.
    pub token_embedding_type: Option<TensorType>,
    /// Types of tensors whose name matches a pattern; the first match counts.
    ///
    /// llama.cpp lowercases patterns and silently ignores them for F16, BF16 and F32; here they
    /// always apply.
    pub tensor_types: Vec<(NamePattern, TensorType)>,
    /// Whether importance weights are available, which changes the choices of some presets.
    pub has_imatrix: bool,
    /// Whether to count layers in the order of the tensors, as llama.cpp does when it keeps the
    /// shards of the source, instead of by layer number and name.
    pub keep_order: bool,
}

impl RecipeOptions {
    fn named_type(&self, name: &str) -> Option<TensorType> {
        self.tensor_types.iter().find(|(pattern, _)| pattern.is_match(name)).map(|(_, ty)| *ty)
    }

    /// Returns the type that the options set explicitly.
    fn explicit_type(&self, name: &str, category: Category) -> Option<TensorType> {
        let named = self.named_type(name);
        match category {
            // This tensor is so large that a pattern may target it.
            Category::TokenEmbedding if name == category::PER_LAYER_EMBEDDING => {
                named.or(self.token_embedding_type)
            }
            Category::TokenEmbedding => self.token_embedding_type.or(named),
            Category::Output => self.output_tensor_type.or(named),
            _ => named,
        }
    }
}

impl RecipeOptions {
    /// Returns a warning about patterns that match no tensor name, with similar names.
    pub fn unmatched<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Option<String> {
        unmatched::warning(self.tensor_types.iter().map(|(pattern, _)| pattern), names)
    }
}

/// Reason for the type of a tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Chosen by the target.
    Recipe,
    /// Set by an option.
    Override,
    /// Unchanged: not a weight matrix, too sensitive, or excluded on request.
    Unchanged,
    /// The row size is not a multiple of the block size of the intended type.
    Fallback {
        /// Intended type.
        intended: TensorType,
    },
}

/// Plan for one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedTensor<'a> {
    /// Source tensor.
    pub source: TensorDesc<'a>,
    /// Type in the output.
    pub target: TensorType,
    /// Reason for the type.
    pub reason: Reason,
    /// Whether the tensor is unusable unless importance weights guide its encoder.
    pub needs_imatrix: bool,
}

/// Plan for all tensors of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// Tensors in the order of the argument of [`plan`].
    pub tensors: Vec<PlannedTensor<'a>>,
}

impl Plan<'_> {
    /// Rejects a plan with tensors that require importance weights but have none.
    ///
    /// `has_weights` returns whether a tensor has weights.
    ///
    /// # Errors
    ///
    /// Lists all such tensors. Without an importance matrix llama.cpp rejects the plan as well; if
    /// the matrix lacks a tensor, it fails when it reaches that tensor.
    pub fn check_imatrix(&self, has_weights: impl Fn(&str) -> bool) -> Result<(), MissingImatrix> {
        let tensors: Vec<_> = self
            .tensors
            .iter()
            .filter(|t| t.needs_imatrix && !has_weights(t.source.name))
            .map(|t| (t.source.name.to_owned(), t.target))
            .collect();
        if tensors.is_empty() { Ok(()) } else { Err(MissingImatrix { tensors }) }
    }
}

/// Error: tensors require importance weights and have none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unusable without importance weights: {}", first_of(.tensors)
)]
pub struct MissingImatrix {
    /// Names and intended types of the tensors.
    pub tensors: Vec<(String, TensorType)>,
}

/// Names the first three tensors, and counts the others.
fn first_of(tensors: &[(String, TensorType)]) -> String {
    const SHOWN: usize = 3;
    let named = tensors.iter().take(SHOWN).map(|(name, ty)| format!("`{name}` as {ty}"));
    let mut text = named.collect::<Vec<_>>().join(", ");
    if let Some(others @ 1..) = tensors.len().checked_sub(SHOWN) {
        let plural = if others == 1 { "" } else { "s" };
        text += &format!(" and {others} other{plural}");
    }
    text
}

/// Plans the type of each tensor. [`Plan::check_imatrix`] reports missing importance weights.
///
/// # Errors
///
/// Returns an error if a tensor's row size is not a multiple of the block size and llama.cpp has no
/// fallback type, or if an option requires an impossible type.
pub fn plan<'a>(
    target: Target,
    model: &Model,
    tensors: &[TensorDesc<'a>],
    options: &RecipeOptions,
) -> Result<Plan<'a>, Error> {
    let mut rules = match target {
        Target::Preset(preset) if !options.pure && preset.default_type().is_quantized() => {
            Some(Rules::new(preset, model, options.has_imatrix, tensors))
        }
        _ => None,
    };
    let mut planned: Vec<_> = tensors
        .iter()
        .map(|&source| PlannedTensor {
            source,
            target: source.ty,
            reason: Reason::Unchanged,
            needs_imatrix: false,
        })
        .collect();
    let Some(default) = target.default_type() else { return Ok(Plan { tensors: planned }) };

    let mut order: Vec<_> = planned.iter_mut().collect();
    if !options.keep_order {
        order.sort_by_key(|t| (t.source.layer(), t.source.name));
    }
    for tensor in order {
        let source = &tensor.source;
        let category = Category::of(source.name);
        let is_left = options.leave_output_tensor && category == Category::Output;
        if is_left || !category::is_quantizable(source, model) {
            continue;
        }
        let is_output = rules.as_ref().is_some_and(|rules| rules.is_output(category));
        let explicit = options
            .explicit_type(source.name, category)
            .or_else(|| options.output_tensor_type.filter(|_| is_output));
        let (intended, reason) = match (explicit, &mut rules) {
            (Some(ty), _) => (ty, Reason::Override),
            (None, Some(rules)) => (rules.choose(source, category), Reason::Recipe),
            (None, None) => (default, Reason::Recipe),
        };
        tensor.target = fit(source, intended)?;
        tensor.reason =
            if tensor.target == intended { reason } else { Reason::Fallback { intended } };
        tensor.needs_imatrix = tensor.target != source.ty
            && rules::needs_imatrix(category, tensor.target, target.file_type());
    }
    Ok(Plan { tensors: planned })
}

/// Returns the intended type if its block size divides the rows, otherwise its fallback type,
/// otherwise F16.
fn fit(tensor: &TensorDesc<'_>, intended: TensorType) -> Result<TensorType, Error> {
    let columns = tensor.columns();
    if rules::fits(columns, intended) {
        return Ok(intended);
    }
    let name = tensor.name;
    if intended.block().is_none() {
        let what = format!("`{name}` cannot become {intended}, a removed type");
        return Err(Error::request("type-not-current", what, "choose another type"));
    }
    match rules::fallback_type(intended) {
        Some(ty) if rules::fits(columns, ty) => Ok(ty),
        Some(_) => Ok(TensorType::F16),
        None => {
            let what = format!(
                "the row size of `{name}`, {columns}, is not a multiple of the block size of {intended}, \
                 which has no fallback type"
            );
            let help = "choose another type for this tensor";
            Err(Error::request("type-does-not-fit", what, help))
        }
    }
}
