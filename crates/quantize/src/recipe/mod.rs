//! Which tensor of a model gets which type: the named mixes of llama.cpp's quantizer, exactly.
//!
//! [`plan`] looks at names, shapes and a few facts about the model, never at weights.
//!
//! ```
//! use gguf::TensorType;
//! use gguf_quantize::recipe::{Mix, Model, Options, Target, TensorDesc, plan};
//!
//! let model = Model::from_keys("llama", |key| (key == "llama.block_count").then_some(32));
//! let down = TensorDesc {
//!     name: "blk.0.ffn_down.weight",
//!     shape: &[11008, 4096],
//!     ty: TensorType::F16,
//! };
//! let plan = plan(Target::Mix(Mix::Q4_K_M), &model, &[down], &Options::default())?;
//! assert_eq!(plan.tensors[0].target, TensorType::Q6_K);
//! # Ok::<(), gguf::Error>(())
//! ```

mod category;
mod mix;
mod model;
mod rules;
mod type_file;
mod unmatched;

use std::fmt;

pub use category::Category;
use gguf::{Error, Status, TensorType, spelling};
pub use mix::{Mix, UnknownMix};
pub use model::Model;
use regex::Regex;
use rules::Rules;
pub use type_file::{parse_entry, parse_type_file, write_type_file};

/// What to make of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A named mix.
    Mix(Mix),
    /// One type for all tensors that can be quantized.
    Type(TensorType),
    /// Every tensor as it is.
    Copy,
}

impl Target {
    /// The value of `general.file_type` for a file made so; `None` if it stays as it was, or if no
    /// mix bears the name of the type.
    pub fn file_type(self) -> Option<Mix> {
        match self {
            Self::Mix(mix) => Some(mix),
            Self::Type(TensorType::MXFP4) => Some(Mix::MXFP4_MOE),
            Self::Type(ty) => ty.name().parse().ok(),
            Self::Copy => None,
        }
    }

    /// The type of tensors for which nothing else is said; `None` to keep what they have.
    fn default_type(self) -> Option<TensorType> {
        match self {
            Self::Mix(mix) => Some(mix.default_type()),
            Self::Type(ty) => Some(ty),
            Self::Copy => None,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mix(mix) => mix.fmt(f),
            Self::Type(ty) => ty.fmt(f),
            Self::Copy => f.pad("COPY"),
        }
    }
}

/// A word that names no [`Target`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` names no mix and no tensor type; {hint}", hint = hint(.0))]
pub struct UnknownTarget(pub String);

impl UnknownTarget {
    /// The targets that are spelt most like the word; none if it is like none.
    pub fn nearest(&self) -> Vec<&'static str> {
        nearest(&self.0)
    }
}

fn nearest(word: &str) -> Vec<&'static str> {
    spelling::nearest(word, mix::known_names().chain(["COPY"]))
}

/// Which target may have been meant, or else all that there are.
fn hint(word: &str) -> String {
    match &nearest(word)[..] {
        [] => format!("known are {} COPY", mix::known_names().collect::<Vec<_>>().join(" ")),
        near => spelling::question(near),
    }
}

impl std::str::FromStr for Target {
    type Err = UnknownTarget;

    /// Parses, in any case, a mix by name, alias or number, `COPY`, or else a tensor type.
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        if s.eq_ignore_ascii_case("COPY") {
            return Ok(Self::Copy);
        }
        let ty = || s.parse().ok().filter(is_for_weights).map(Self::Type);
        s.parse().ok().map(Self::Mix).or_else(ty).ok_or_else(|| UnknownTarget(s.to_owned()))
    }
}

/// True for types that files hold weights in.
fn is_for_weights(ty: &TensorType) -> bool {
    ty.traits().is_some_and(|t| t.status == Status::Current) && !ty.is_integer()
}

/// A tensor as it is in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorDesc<'a> {
    /// The name that it will have in the file, such as `blk.0.attn_q.weight`.
    pub name: &'a str,
    /// Elements, fastest dimension first.
    pub shape: &'a [u64],
    /// The type that it has now.
    pub ty: TensorType,
}

impl TensorDesc<'_> {
    /// Elements of one row.
    fn columns(&self) -> u64 {
        self.shape.first().copied().unwrap_or(1)
    }

    /// N of a name that starts with `blk.N`.
    fn layer(&self) -> Option<u64> {
        let rest = self.name.strip_prefix("blk.")?;
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        // Layers beyond 32 bits exist in no model; the bound keeps arithmetic on them safe.
        rest[..digits].parse::<u32>().ok().map(u64::from)
    }
}

/// Wishes that go beyond the target.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Give all tensors the default type of the mix.
    pub pure: bool,
    /// Keep `output.weight` as it is.
    pub leave_output_tensor: bool,
    /// The type of the output matrix, or under a mix, of the embeddings that serve as such.
    pub output_tensor_type: Option<TensorType>,
    /// The type of the token embeddings.
    pub token_embedding_type: Option<TensorType>,
    /// Types for the tensors whose name a pattern is found in; the first that is found counts.
    ///
    /// llama.cpp puts patterns in lower case, and ignores them for F16, BF16 and F32
    /// without a word; here they always hold.
    pub tensor_types: Vec<(Regex, TensorType)>,
    /// Whether importance weights are at hand: some mixes then choose otherwise.
    pub has_imatrix: bool,
    /// Count layers in the order in which the tensors are given, as llama.cpp does when it
    /// keeps the shards of the source, instead of by number of layer and name.
    pub keep_order: bool,
}

impl Options {
    fn named_type(&self, name: &str) -> Option<TensorType> {
        self.tensor_types.iter().find(|(pattern, _)| pattern.is_match(name)).map(|(_, ty)| *ty)
    }

    /// The type that the options ask for by name.
    fn explicit_type(&self, name: &str, category: Category) -> Option<TensorType> {
        let named = self.named_type(name);
        match category {
            // This one is so large that a pattern may single it out.
            Category::TokenEmbedding if name == category::PER_LAYER_EMBEDDING => {
                named.or(self.token_embedding_type)
            }
            Category::TokenEmbedding => self.token_embedding_type.or(named),
            Category::Output => self.output_tensor_type.or(named),
            _ => named,
        }
    }
}

impl Options {
    /// Of patterns for types that are found in the name of no tensor, a warning that says which names
    /// are near.
    pub fn unmatched<'n>(&self, names: impl Iterator<Item = &'n str> + Clone) -> Option<String> {
        unmatched::warning(self.tensor_types.iter().map(|(pattern, _)| pattern), names)
    }
}

/// Why a tensor gets its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The target says so.
    Recipe,
    /// An option says so.
    Override,
    /// It stays as it is: not a matrix of weights, too delicate, or left out on request.
    Kept,
    /// Its rows are no whole number of blocks of the type that it should have had.
    Fallback {
        /// The type that it should have had.
        wanted: TensorType,
    },
}

/// What becomes of one tensor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedTensor<'a> {
    /// The tensor as it is.
    pub source: TensorDesc<'a>,
    /// The type that it gets.
    pub target: TensorType,
    /// Why.
    pub reason: Reason,
    /// Whether it comes out as garbage unless importance weights guide its encoder.
    pub needs_imatrix: bool,
}

/// What becomes of each tensor of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan<'a> {
    /// In the order in which they were given to [`plan`].
    pub tensors: Vec<PlannedTensor<'a>>,
}

impl Plan<'_> {
    /// Refuses a plan some of whose tensors need importance weights that are not there.
    ///
    /// `has_weights` says whether there are any for a tensor of this name.
    ///
    /// # Errors
    ///
    /// Lists all such tensors. Without any importance matrix llama.cpp refuses likewise;
    /// with one that lacks a tensor it works up to that tensor before it does.
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

/// Tensors that need importance weights and have none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{count} tensor(s) would be garbage without importance weights, the first being {first}; \
     give an importance matrix that covers them, or choose a target of more bits",
    count = .tensors.len(), first = first_of(.tensors)
)]
pub struct MissingImatrix {
    /// Their names, and the types they should get.
    pub tensors: Vec<(String, TensorType)>,
}

fn first_of(tensors: &[(String, TensorType)]) -> String {
    tensors.first().map(|(name, ty)| format!("`{name}` as {ty}")).unwrap_or_default()
}

/// Decides what becomes of each tensor. Importance weights that are missing are for
/// [`Plan::check_imatrix`] to complain about.
///
/// # Errors
///
/// If a tensor's rows are no whole blocks of the type that it should get and llama.cpp
/// knows none to stand in, or if an option asks for an impossible type.
pub fn plan<'a>(
    target: Target,
    model: &Model,
    tensors: &[TensorDesc<'a>],
    options: &Options,
) -> Result<Plan<'a>, Error> {
    let mut rules = match target {
        Target::Mix(mix) if !options.pure && mix.default_type().is_quantized() => {
            Some(Rules::new(mix, model, options.has_imatrix, tensors))
        }
        _ => None,
    };
    let mut planned: Vec<_> = tensors
        .iter()
        .map(|&source| PlannedTensor {
            source,
            target: source.ty,
            reason: Reason::Kept,
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
        let (wanted, reason) = match (explicit, &mut rules) {
            (Some(ty), _) => (ty, Reason::Override),
            (None, Some(rules)) => (rules.choose(source, category), Reason::Recipe),
            (None, None) => (default, Reason::Recipe),
        };
        tensor.target = fit(source, wanted)?;
        tensor.reason = if tensor.target == wanted { reason } else { Reason::Fallback { wanted } };
        tensor.needs_imatrix = tensor.target != source.ty
            && rules::needs_imatrix(category, tensor.target, target.file_type());
    }
    Ok(Plan { tensors: planned })
}

/// The wanted type if the rows are whole blocks of it, or else the type that stands in for it, or
/// else F16.
fn fit(tensor: &TensorDesc<'_>, wanted: TensorType) -> Result<TensorType, Error> {
    let columns = tensor.columns();
    if rules::fits(columns, wanted) {
        return Ok(wanted);
    }
    let name = tensor.name;
    if wanted.block().is_none() {
        let what =
            format!("`{name}` cannot become {wanted}, a type that files of today do not have");
        return Err(Error::request("type-not-current", what, "choose another type"));
    }
    match rules::stand_in(wanted) {
        Some(ty) if rules::fits(columns, ty) => Ok(ty),
        Some(_) => Ok(TensorType::F16),
        None => {
            let what = format!(
                "rows of `{name}` have {columns} elements, no whole number of blocks of {wanted}, \
                 and no other type stands in for it"
            );
            let help = "choose another type for this tensor";
            Err(Error::request("type-does-not-fit", what, help))
        }
    }
}
