//! Adapters: reading and comparison with a base model.

use std::collections::BTreeMap;

use gguf::{Error, Metadata, Value};
use gguf_store::{Model, ModelTensor};

use super::digest::{BASE_DIGEST, base_digest};
use super::pair::{Pair, SUFFIXES};
use super::values::values;

/// Key of alpha.
pub const ALPHA: &str = "adapter.lora.alpha";

/// Key of the tokens after which an activated LoRA (aLoRA) takes effect.
pub const INVOCATION_TOKENS: &str = "adapter.alora.invocation_tokens";

/// LoRA adapter in a GGUF file.
#[derive(Clone)]
pub struct Adapter {
    /// Metadata.
    pub metadata: Metadata,
    /// Scale of the products, before the division by their rank: a finite number other than 0.
    pub alpha: f32,
    /// Pairs by name of the base tensor.
    pub pairs: BTreeMap<String, Pair>,
    /// Tensors that replace tensors of the base model, such as norms.
    pub replaced: Vec<ModelTensor>,
}

impl Adapter {
    /// Reads an adapter and checks all its numbers.
    ///
    /// # Errors
    /// `adapter-none` if `model` is not a LoRA adapter; `adapter-damaged` if alpha is missing or has no meaning, or if
    /// matrices of a pair do not match; `adapter-incomplete` if a matrix of a pair is missing; `adapter-unsupported` for
    /// an activated LoRA; `weights-unusable` for NaN and infinity; errors of reading.
    pub fn read(model: &Model) -> Result<Self, Error> {
        let metadata = model.metadata().clone();
        let path = model.parts().first().map_or_else(Default::default, |part| part.path.to_owned());
        let fault = |what: String| {
            Error::input("adapter-damaged", &path, what, "convert the adapter again")
        };
        if metadata.str("general.type") != Some("adapter") {
            let (what, help) = ("is not a LoRA adapter", "specify the file of the adapter");
            return Err(Error::input("adapter-none", &path, what, help));
        }
        if metadata.str("adapter.type") != Some("lora") {
            let what = match metadata.str("adapter.type") {
                Some(other) => format!("is an adapter of the type `{other}`; expected lora"),
                None => "has no key `adapter.type`; expected lora".into(),
            };
            let help = "specify a LoRA adapter";
            return Err(Error::input("adapter-none", &path, what, help));
        }
        if metadata.get(INVOCATION_TOKENS).is_some() {
            let what = format!(
                "is an activated LoRA (aLoRA): it takes effect only after the tokens of `{INVOCATION_TOKENS}`, \
                 which is not supported"
            );
            let help = "use llama-server, which activates it after these tokens";
            return Err(Error::input("adapter-unsupported", &path, what, help));
        }
        let alpha = alpha(&metadata).map_err(|what| {
            let help = format!(
                "set it to the adapter's lora_alpha: `gguf edit FILE --set {ALPHA}:f32=16`"
            );
            Error::input("adapter-damaged", &path, what, help)
        })?;
        let index = model.index();
        let (mut pairs, mut replaced) = (BTreeMap::new(), Vec::new());
        for tensor in model.tensors() {
            let name = &tensor.info.name;
            let Some(base) = SUFFIXES.iter().find_map(|suffix| name.strip_suffix(suffix)) else {
                replaced.push(tensor.clone());
                continue;
            };
            let [a, b] = SUFFIXES.map(|suffix| index.get(format!("{base}{suffix}").as_str()));
            let (Some(&a), Some(&b)) = (a, b) else {
                let what = format!("has only `{name}` of the pair for `{base}`");
                let help = "convert the adapter again";
                return Err(Error::input("adapter-incomplete", &path, what, help));
            };
            let pair = Pair { a: a.clone(), b: b.clone() };
            if pair.dims(base).is_none() {
                let what = format!(
                    "has matrices of incompatible shapes for `{base}`: {} and {}",
                    a.info.shape, b.info.shape
                );
                return Err(fault(what));
            }
            pairs.insert(base.to_owned(), pair);
        }
        if pairs.is_empty() {
            return Err(fault("has no pairs of matrices".into()));
        }
        for tensor in model.tensors() {
            if let Some(number) = values(tensor)?.iter().find(|number| !number.is_finite()) {
                let error = Error::weights(&tensor.info.name, format!("has an element {number}"));
                return Err(error.in_file(&path));
            }
        }
        Ok(Self { metadata, alpha, pairs, replaced })
    }

    /// Refuses a base model that the adapter does not match.
    ///
    /// # Errors
    /// `adapter-other-base` with the first of the [`misfits`](Self::misfits).
    pub fn require_fit(&self, base: &Model) -> Result<(), Error> {
        let Some(misfit) = self.misfits(base).into_iter().next() else { return Ok(()) };
        let help = "specify the base model of the adapter; `gguf lora check` lists all mismatches";
        Err(Error::request("adapter-other-base", misfit, help))
    }

    /// Returns the reasons why the adapter does not match `base`, one sentence each.
    pub fn misfits(&self, base: &Model) -> Vec<String> {
        let mut misfits = Vec::new();
        let [ours, theirs] = [&self.metadata, base.metadata()]
            .map(|metadata| metadata.architecture().unwrap_or_default());
        if ours != theirs {
            misfits.push(format!("the adapter is for the architecture {ours}, not {theirs}"));
        }
        let index = base.index();
        let mut is_another = false;
        for (name, pair) in &self.pairs {
            let (Some(tensor), Some(dims)) = (index.get(name.as_str()), pair.dims(name)) else {
                misfits.push(format!("the base model has no tensor `{name}`"));
                continue;
            };
            let shape = &tensor.info.shape;
            if !dims.fit(shape) {
                is_another = true;
                misfits.push(format!(
                    "`{name}` is {shape} in the base model, {} x {} in the adapter",
                    dims.columns, dims.rows
                ));
            }
        }
        for tensor in &self.replaced {
            let base = index.get(&*tensor.info.name);
            if base.is_none_or(|base| base.info.shape != tensor.info.shape) {
                misfits.push(format!(
                    "the base model has no tensor `{}` of the same shape",
                    tensor.info.name
                ));
            }
        }
        if let Some(digest) = self.metadata.str(BASE_DIGEST)
            && !is_another
            && digest != base_digest(base.tensors().iter().map(|t| (&*t.info.name, &*t.info.shape)))
        {
            misfits.push("the adapter is for a base model with other matrices".into());
        }
        misfits
    }
}

/// Returns alpha, or the fault of its key.
///
/// llama.cpp reads a missing alpha as 0, and 0 as a scale without alpha and rank; PEFT reads 0 as no effect. The file
/// must say which scale is meant.
fn alpha(metadata: &Metadata) -> Result<f32, String> {
    match metadata.get(ALPHA) {
        Some(Value::F32(alpha)) if alpha.is_finite() && *alpha != 0.0 => Ok(*alpha),
        Some(Value::F32(alpha)) => Err(format!(
            "has the value {alpha} for `{ALPHA}`; expected a finite number other than 0"
        )),
        Some(other) => {
            Err(format!("has the type {} for `{ALPHA}`; expected f32", other.value_type()))
        }
        None => Err(format!("has no key `{ALPHA}`")),
    }
}
