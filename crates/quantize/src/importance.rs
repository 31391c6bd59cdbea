//! Importance weights of the tensors of a job.

use std::collections::HashMap;
use std::sync::Arc;

use gguf::{Error, TensorType};
use gguf_pipeline::{Item, Job};

use crate::decision::Decision;
use crate::recipe::MissingImatrix;

/// Importance weights by tensor.
#[derive(Clone, Debug, Default)]
pub struct Importance {
    /// By the name of the source tensor: one finite weight per column, for expert tensors (three
    /// dimensions) one per column of each expert.
    pub weights: HashMap<String, Arc<[f32]>>,
    /// Whether missing tensors are expected and need no note.
    pub is_partial: bool,
}

/// Policy for tensors that are unusable without importance weights and have none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MissingImportance {
    /// Return an error that lists them.
    #[default]
    Error,
    /// Use a larger type that needs no weights: Q2_K, or Q3_K instead of Q2_K.
    Fallback,
    /// Weight all their columns equally.
    Uniform,
}

impl Importance {
    /// Assigns importance weights to the items of a job.
    ///
    /// # Errors
    /// Returns an error if the number of weights differs from the number of columns. For token
    /// embeddings this is common (their columns were not measured), so they get no weights instead.
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
                let help = "it belongs to another model; compute one for this model";
                return Err(Error::request("imatrix-other-model", what, help));
            }
        }
        Ok(())
    }
}

/// Applies the policy `missing` to tensors that are unusable without importance weights, and
/// returns notes for the user.
///
/// # Errors
/// Returns the list of these tensors if the policy is an error.
pub(crate) fn cover(
    items: &mut [Item],
    decisions: &[Decision],
    missing: MissingImportance,
) -> Result<Vec<String>, Error> {
    let mut refused = Vec::new();
    // Notes with their tensors: one note for all tensors with the same text.
    let mut notes: Vec<(String, Vec<String>)> = Vec::new();
    let mut note =
        |name: &str, what: String| match notes.iter_mut().find(|(notes, _)| *notes == what) {
            Some((_, names)) => names.push(name.to_owned()),
            None => notes.push((what, vec![name.to_owned()])),
        };
    for (item, decision) in items.iter_mut().zip(decisions) {
        item.target = decision.target;
        let must = item.target != item.tensor.stored_type
            && gguf_quant::codec(item.target).is_some_and(|codec| codec.requires_importance());
        if item.importance.is_some() || !(must || decision.needs_importance) {
            continue;
        }
        let (name, intended) = (&item.tensor.name, item.target);
        match missing {
            MissingImportance::Error => refused.push((name.clone(), intended)),
            MissingImportance::Fallback => {
                item.target = fallback_without_weights(intended);
                let target = item.target;
                note(name, format!("{target} instead of {intended}, without weights"));
            }
            MissingImportance::Uniform => {
                let shape = &item.tensor.shape;
                item.importance = Some(vec![1.0; shape.row_len() as usize].into());
                note(name, format!("{intended}, uniform weights"));
            }
        }
    }
    if refused.is_empty() {
        let note = |(what, names): (String, Vec<String>)| match &names[..] {
            [name] => format!("`{name}`: {what}"),
            names => format!("{} tensors: {what}", names.len()),
        };
        return Ok(notes.into_iter().map(note).collect());
    }
    let help = "pass an importance matrix that covers them, choose a type with more bits, or pass \
                `--imatrix-missing fallback` or `uniform`";
    Err(Error::request("imatrix-needed", MissingImatrix { tensors: refused }.to_string(), help))
}

/// Returns the smallest larger type that is usable without importance weights.
fn fallback_without_weights(ty: TensorType) -> TensorType {
    match ty {
        TensorType::Q2_K | TensorType::IQ3_XXS => TensorType::Q3_K,
        _ => TensorType::Q2_K,
    }
}

/// Describes the tensors without an entry in the importance matrix.
pub(crate) fn missing_entries(items: &[Item]) -> Option<String> {
    let bare: Vec<_> = items
        .iter()
        .filter(|item| item.target.is_quantized() && item.target != item.tensor.stored_type)
        .filter(|item| item.importance.is_none())
        .map(|item| format!("`{}`", item.tensor.name))
        .collect();
    let first = bare.first()?;
    Some(match bare.len() {
        1 => format!("the importance matrix has no entry for {first}"),
        2..=4 => format!("the importance matrix has no entry for {}", bare.join(", ")),
        n => format!("the importance matrix has no entry for {n} tensors, the first being {first}"),
    })
}
