//! Importance weights for the tensors of a job.

use std::collections::HashMap;
use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_pipeline::{Item, Job};

use crate::decision::Decision;
use crate::recipe::MissingImatrix;

/// Importance weights by tensor.
#[derive(Clone, Debug, Default)]
pub struct Importance {
    /// By the name of the tensor in the source: one finite weight per column, for tensors of experts
    /// (the third dimension) one per column of each.
    pub weights: HashMap<String, Arc<[f32]>>,
    /// Whether tensors that it says nothing of need no mention.
    pub is_partial: bool,
}

/// What to do about tensors that would be garbage without importance weights and have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Missing {
    /// Refuse, and list them.
    #[default]
    Error,
    /// Give them a somewhat larger type that can do without: Q2_K, or Q3_K instead of Q2_K.
    Fallback,
    /// Let all their columns count alike.
    Uniform,
}

impl Importance {
    /// Gives the items of a job their weights.
    ///
    /// # Errors
    /// If there are not as many weights as the tensor has columns. For token embeddings that is
    /// usual (their columns are not those that were measured), and they get none.
    pub(crate) fn assign(&self, job: &mut Job) -> Result<(), Error> {
        for item in &mut job.items {
            let Some(weights) = self.weights.get(&item.tensor.name) else { continue };
            let shape = &item.tensor.shape;
            let experts = shape.get(2).copied().unwrap_or(1);
            if weights.len() as u64 == shape.row_len().saturating_mul(experts) {
                item.importance = Some(weights.clone());
            } else if !matches!(
                item.tensor.name.as_str(),
                "token_embd.weight" | "per_layer_token_embd.weight"
            ) {
                let what = format!(
                    "the importance matrix has {} weights for `{}` with shape {shape}",
                    weights.len(),
                    item.tensor.name
                );
                let help = "it belongs to another model; make one for this model";
                return Err(Error::request("imatrix-other-model", what, help));
            }
        }
        Ok(())
    }
}

/// Makes sure that no tensor comes out as garbage for want of weights, in the way that `missing`
/// says, and returns what the user should know.
///
/// # Errors
/// The list of these tensors, if it is to be an error.
pub(crate) fn cover(
    items: &mut [Item],
    decisions: &[Decision],
    missing: Missing,
) -> Result<Vec<String>, Error> {
    let mut refused = Vec::new();
    // What is said, and of which tensors: one note for all that have the same.
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    let mut tell = |name: &str, what: String| match told.iter_mut().find(|(told, _)| *told == what)
    {
        Some((_, names)) => names.push(name.to_owned()),
        None => told.push((what, vec![name.to_owned()])),
    };
    for (item, decision) in items.iter_mut().zip(decisions) {
        item.target = decision.target;
        let must = item.target != item.tensor.stored_type
            && gguf_quant::codec(item.target).is_some_and(|codec| codec.requires_importance());
        if item.importance.is_some() || !(must || decision.needs_weights) {
            continue;
        }
        let (name, wanted) = (&item.tensor.name, item.target);
        match missing {
            Missing::Error => refused.push((name.clone(), wanted)),
            Missing::Fallback => {
                item.target = without_weights(wanted);
                let target = item.target;
                tell(name, format!("{target} instead of {wanted}, without weights"));
            }
            Missing::Uniform => {
                let shape = &item.tensor.shape;
                item.importance = Some(vec![1.0; shape.row_len() as usize].into());
                tell(name, format!("{wanted}, uniform weights"));
            }
        }
    }
    if refused.is_empty() {
        let note = |(what, names): (String, Vec<String>)| match &names[..] {
            [name] => format!("`{name}`: {what}"),
            names => format!("{} tensors: {what}", names.len()),
        };
        return Ok(told.into_iter().map(note).collect());
    }
    let all: String = refused.iter().map(|(name, ty)| format!("\n  {name} as {ty}")).collect();
    let what = MissingImatrix { tensors: refused }.to_string();
    let help = format!("or say --imatrix-missing fallback or uniform; these are{all}");
    Err(Error::request("imatrix-needed", what, help))
}

/// The smallest type above one of the smallest that does well enough without weights.
fn without_weights(ty: TensorType) -> TensorType {
    match ty {
        TensorType::Q2_K | TensorType::IQ3_XXS => TensorType::Q3_K,
        _ => TensorType::Q2_K,
    }
}

/// Names the tensors for which an importance matrix has nothing, for people.
pub(crate) fn uncovered(items: &[Item]) -> Option<String> {
    let bare: Vec<_> = items
        .iter()
        .filter(|item| item.target.is_quantized() && item.target != item.tensor.stored_type)
        .filter(|item| item.importance.is_none())
        .map(|item| format!("`{}`", item.tensor.name))
        .collect();
    let first = bare.first()?;
    Some(match bare.len() {
        1 => format!("the importance matrix has nothing for {first}"),
        2..=4 => format!("the importance matrix has nothing for {}", bare.join(", ")),
        n => format!("the importance matrix has nothing for {n} tensors, the first being {first}"),
    })
}
