//! Choice of one type per tensor within a size budget, minimizing the expected loss.
//!
//! The loss of a type is measured: rows are encoded and decoded, and the squared errors are summed
//! with the importance weights of the columns. If these weights are the mean squares of the
//! activations, the sum is the expected squared error of the output per token, assuming independent
//! errors. Two kinds of tensors have no such weights: token embeddings, of which a token uses one
//! row, so their sum is divided by the number of rows; all others use plain squared errors.
//!
//! Where a [`Sensitivity`] provides the KL divergence of each type of each tensor, that replaces
//! the measured loss.

use gguf::units::bytes;
use gguf::{Error, TensorType};
use gguf_pipeline::{Item, Job, parallel};
use gguf_store::{Model, Progress};

use crate::decision::Decision;
use crate::knapsack::{Choice, allocate};
use crate::plan::{self, Quantization, QuantizeOptions};
use crate::recipe::{Category, Target};
use crate::sensitivity::Sensitivity;

/// Limit on the output size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Budget {
    /// File size in bytes, with header and padding.
    FileBytes(u64),
    /// Bits per weight, averaged over all tensors.
    BitsPerWeight(f64),
}

/// Maximum number of elements to measure per tensor: rows spread evenly over it.
const SAMPLE: u64 = 512 * 1024;

/// Candidate types of tensors without importance weights, and the additional candidates with them.
const LADDER: [TensorType; 14] = [
    TensorType::Q2_K,
    TensorType::Q3_K,
    TensorType::IQ3_S,
    TensorType::IQ4_XS,
    TensorType::IQ4_NL,
    TensorType::Q4_0,
    TensorType::Q4_1,
    TensorType::Q4_K,
    TensorType::Q5_0,
    TensorType::Q5_1,
    TensorType::Q5_K,
    TensorType::Q6_K,
    TensorType::Q8_0,
    TensorType::F16,
];
const WITH_WEIGHTS: [TensorType; 6] = [
    TensorType::IQ1_S,
    TensorType::IQ1_M,
    TensorType::IQ2_XXS,
    TensorType::IQ2_XS,
    TensorType::IQ2_S,
    TensorType::IQ3_XXS,
];

/// Plans the quantization of `model` within a budget. Types that the options set explicitly are
/// kept.
///
/// Measures every candidate type on every tensor, which takes about as long as quantizing half a
/// million weights per tensor to each type. `progress` is called from many threads with the number
/// of source bytes measured; it cancels the job by returning `Break`.
///
/// # Errors
/// Returns an error if the budget is too small, and the errors of [`plan::plan`].
pub fn plan(
    model: &Model,
    budget: Budget,
    options: &QuantizeOptions,
    progress: &dyn Progress,
) -> Result<Quantization, Error> {
    if let Budget::BitsPerWeight(bits) = budget
        && !(bits.is_finite() && bits > 0.0)
    {
        let what = format!("{bits} bits per weight is not a valid size");
        return Err(Error::request("budget-invalid", what, "choose a number above 0"));
    }
    // Starts from a large type to find out which tensors are free.
    let (mut job, decisions, mut notes) =
        plan::prepare(model, Target::Type(TensorType::Q8_0), options)?;
    let candidates = all_candidates(&job.items, &decisions);
    let losses = match &options.sensitivity {
        Some(sensitivity) => by_sensitivity(&job.items, candidates, sensitivity)?,
        None => {
            progress.begin("measuring", model.byte_len());
            measure(&job.items, candidates, progress)?
        }
    };

    let header_len = header_len(&job, options)?;
    let alignment = job.header()?.alignment();
    let elements: u64 =
        job.items.iter().map(|item| item.tensor.shape.elements().unwrap_or(0)).sum();
    let (padded, available) = match budget {
        Budget::FileBytes(bytes) => (true, bytes.saturating_sub(header_len)),
        Budget::BitsPerWeight(bits) => (false, (bits * elements as f64 / 8.0) as u64),
    };
    let choices: Vec<Vec<Choice>> = job
        .items
        .iter()
        .zip(&losses)
        .map(|(item, losses)| {
            let choice = |(ty, loss): &(TensorType, f64)| {
                let bytes = ty.byte_len(&item.tensor.shape).unwrap_or(0);
                let padded =
                    if padded { alignment.align_up(bytes).unwrap_or(bytes) } else { bytes };
                Choice { bytes: padded, cost: *loss }
            };
            losses.iter().map(choice).collect()
        })
        .collect();
    let chosen = allocate(&choices, available).map_err(|fault| {
        let what = match budget {
            Budget::FileBytes(len) => {
                let minimum = header_len + fault.minimum;
                let (len, size) = (bytes(len), bytes(minimum));
                // To the exact byte, so that the reported minimum is a valid budget.
                format!(
                    "a file size of {len} is too small: the minimum is {size} ({minimum} bytes)"
                )
            }
            Budget::BitsPerWeight(bits) => format!(
                "{bits} bits per weight is too small: the minimum is {:.2}",
                // Rounded up, so that the reported minimum is a valid budget.
                (fault.minimum as f64 * 800.0 / elements.max(1) as f64).ceil() / 100.0
            ),
        };
        let help =
            "choose a larger size, or pass an importance matrix, which makes smaller types possible";
        Error::request("budget-too-small", what, help)
    })?;
    let mut loss = 0.0;
    for (i, item) in job.items.iter_mut().enumerate() {
        item.target = losses[i].get(chosen[i]).map_or(item.target, |(ty, _)| *ty);
        loss += choices[i].get(chosen[i]).map_or(0.0, |choice| choice.cost);
    }
    notes.push(format!("chosen types: {}", counts_of_types(&job.items)));
    // Without sensitivities, the loss has no unit that says how good the model is.
    if options.sensitivity.is_some() {
        notes.push(format!("expected KL divergence {loss:.6}"));
    }
    let file_type = Target::Type(most_frequent_type(&job.items));
    notes.extend(plan::finish(&mut job, file_type, options)?);
    Ok(Quantization { job, notes })
}

/// Size of the header, with the keys that are set at the end.
fn header_len(job: &Job, options: &QuantizeOptions) -> Result<u64, Error> {
    let mut job = job.clone();
    plan::set_keys(&mut job.metadata, Target::Type(TensorType::Q8_0), options);
    Ok(gguf::write_header(&job.header()?)?.len() as u64)
}

/// A tensor whose type is free.
pub struct FreeTensor {
    /// The tensor with its importance weights.
    pub item: Item,
    /// Candidate types with their losses, in the unit of [`plan`].
    pub losses: TypeLosses,
}

/// Candidate types with their losses.
pub type TypeLosses = Vec<(TensorType, f64)>;

impl FreeTensor {
    /// Returns the loss of a type; 0 if it is not a candidate.
    pub fn loss(&self, ty: TensorType) -> f64 {
        self.losses.iter().find(|(other, _)| *other == ty).map_or(0.0, |(_, loss)| *loss)
    }
}

/// Returns the tensors whose types a budget may choose, measured as in [`plan`].
///
/// # Errors
/// Returns the errors of [`plan`], except that of a small budget.
pub fn free_tensors(
    model: &Model,
    options: &QuantizeOptions,
    progress: &dyn Progress,
) -> Result<Vec<FreeTensor>, Error> {
    let (job, decisions, _) = plan::prepare(model, Target::Type(TensorType::Q8_0), options)?;
    let both = job.items.into_iter().zip(decisions);
    let items: Vec<Item> = both.filter(|(_, d)| d.free).map(|(item, _)| item).collect();
    let candidates: Vec<_> = items.iter().map(candidates).collect();
    let losses = measure(&items, candidates, progress)?;
    let free = items.into_iter().zip(losses).map(|(item, losses)| FreeTensor { item, losses });
    Ok(free.collect())
}

/// Returns the candidate types of each tensor; a single one if its type is fixed.
fn all_candidates(items: &[Item], decisions: &[Decision]) -> Vec<Vec<TensorType>> {
    let item_candidates = |(item, decision): (&Item, &Decision)| match decision.free {
        true => candidates(item),
        false => vec![decision.target],
    };
    items.iter().zip(decisions).map(item_candidates).collect()
}

/// Valid divergences: the file may contain any number.
const VALID_DIVERGENCE: std::ops::Range<f64> = 0.0..1e9;

/// Returns the divergences of the candidate types from a sensitivity file; nothing for tensors with
/// a fixed type.
fn by_sensitivity(
    items: &[Item],
    candidates: Vec<Vec<TensorType>>,
    sensitivity: &Sensitivity,
) -> Result<Vec<TypeLosses>, Error> {
    let divergences = |(item, types): (&Item, Vec<TensorType>)| {
        let tensor = &item.tensor;
        if let [only] = types[..] {
            return Ok(vec![(only, 0.0)]);
        }
        let known = sensitivity.of(&tensor.name, &tensor.shape)?;
        let does = |ty: TensorType| match ty == tensor.stored_type {
            true => Some((ty, 0.0)),
            false => known
                .get(&*ty.name())
                .filter(|does| VALID_DIVERGENCE.contains(*does))
                .map(|does| (ty, *does)),
        };
        let all: TypeLosses = types.into_iter().filter_map(does).collect();
        if all.is_empty() {
            let what = format!("the sensitivity file has no types for `{}`", tensor.name);
            let help = "measure them again with more types";
            return Err(Error::request("sensitivity-lacks", what, help));
        }
        Ok(all)
    };
    items.iter().zip(candidates).map(divergences).collect()
}

/// Returns the total loss of a job in the unit of [`plan`], for comparing plans of the same model.
///
/// # Errors
/// Returns an error if a tensor cannot be read or encoded.
pub fn expected_error(job: &Job) -> Result<f64, Error> {
    let types: Vec<_> = job.items.iter().map(|item| vec![item.target]).collect();
    let losses = measure(&job.items, types, &())?;
    Ok(losses.into_iter().flatten().map(|(_, loss)| loss).sum())
}

/// Lists the types of matrices with their number of tensors, the most frequent first.
fn counts_of_types(items: &[Item]) -> String {
    let mut counts: Vec<(TensorType, usize)> = Vec::new();
    for item in items.iter().filter(|item| item.tensor.shape.len() > 1) {
        match counts.iter_mut().find(|(ty, _)| *ty == item.target) {
            Some((_, count)) => *count += 1,
            None => counts.push((item.target, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let texts: Vec<_> = counts.iter().map(|(ty, count)| format!("{ty} ({count})")).collect();
    texts.join(", ")
}

/// Returns the type with the most weights.
fn most_frequent_type(items: &[Item]) -> TensorType {
    let elements_of = |ty| {
        let items_of_type = items.iter().filter(|item| item.target == ty);
        items_of_type.map(|item| item.tensor.shape.elements().unwrap_or(0)).sum::<u64>()
    };
    let types = LADDER.into_iter().chain(WITH_WEIGHTS);
    types.max_by_key(|ty| elements_of(*ty)).unwrap_or(TensorType::F16)
}

/// Returns the candidate types whose block length divides the rows of a tensor.
fn candidates(item: &Item) -> Vec<TensorType> {
    let with_weights = WITH_WEIGHTS.into_iter().filter(|_| item.importance.is_some());
    let columns = item.tensor.shape.row_len();
    let fits = |ty: &TensorType| ty.block().is_some_and(|(len, _)| columns.is_multiple_of(len));
    with_weights.chain(LADDER).filter(fits).collect()
}

/// Measures the loss of each candidate in each tensor.
fn measure(
    items: &[Item],
    candidates: Vec<Vec<TensorType>>,
    progress: &dyn Progress,
) -> Result<Vec<TypeLosses>, Error> {
    parallel::map(items.len(), |i| {
        let (item, types) = (&items[i], &candidates[i]);
        let measured = losses(item, types)?;
        let bytes = item.tensor.stored_type.byte_len(&item.tensor.shape).unwrap_or(0);
        progress.step(bytes)?;
        Ok(types.iter().copied().zip(measured).collect())
    })
}

/// Measures the loss of each type in one tensor.
fn losses(item: &Item, types: &[TensorType]) -> Result<Vec<f64>, Error> {
    let tensor = &item.tensor;
    let (row_len, rows) = (tensor.shape.row_len(), tensor.rows());
    let nothing_lost = types.iter().all(|ty| *ty == tensor.stored_type);
    if nothing_lost || row_len == 0 || rows == 0 {
        return Ok(vec![0.0; types.len()]);
    }
    let sampled_rows = (SAMPLE / row_len).clamp(1, rows);
    let mut sums = vec![0.0; types.len()];
    let mut stored = Vec::new();
    let mut x = vec![0.0; row_len as usize];
    let mut decoded = x.clone();
    let mut encoded = Vec::new();
    let failed = |fault: gguf_quant::CodecError| Error::weights(&tensor.name, fault.to_string());
    for i in 0..sampled_rows {
        let row = (u128::from(i) * u128::from(rows) / u128::from(sampled_rows)) as u64;
        tensor.read_rows(row, 1, &mut stored)?;
        gguf_quant::decode_row(tensor.stored_type, &stored, &mut x).map_err(failed)?;
        let weights = item.importance_of_row(row).0;
        for (ty, sum) in types.iter().zip(&mut sums) {
            if *ty == tensor.stored_type {
                continue;
            }
            encoded.resize(ty.byte_len(&[row_len]).unwrap_or(0) as usize, 0);
            gguf_quant::encode_row(*ty, &x, weights, &mut encoded).map_err(failed)?;
            gguf_quant::decode_row(*ty, &encoded, &mut decoded).map_err(failed)?;
            *sum += weighted_error(&x, &decoded, weights);
        }
    }
    let used_rows = match Category::of(&tensor.name) {
        Category::TokenEmbedding => 1.0,
        _ => rows as f64,
    };
    sums.iter_mut().for_each(|sum| *sum *= used_rows / sampled_rows as f64);
    Ok(sums)
}

fn weighted_error(x: &[f32], decoded: &[f32], weights: Option<&[f32]>) -> f64 {
    let squares = x.iter().zip(decoded).map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2));
    match weights {
        None => squares.sum(),
        Some(weights) => squares.zip(weights).map(|(square, w)| square * f64::from(*w)).sum(),
    }
}

#[cfg(test)]
mod tests {
    use gguf::Status;

    use super::*;

    #[test]
    fn every_type_is_a_candidate_or_excluded() {
        // Types for models trained with such weights.
        let trained = [
            TensorType::TQ1_0,
            TensorType::TQ2_0,
            TensorType::MXFP4,
            TensorType::NVFP4,
            TensorType::Q1_0,
            TensorType::Q2_0,
        ];
        let left_out: Vec<_> = TensorType::all()
            .filter(|ty| ty.is_quantized() && !LADDER.contains(ty) && !WITH_WEIGHTS.contains(ty))
            .filter(|ty| ty.traits().is_some_and(|row| row.status == Status::Current))
            .collect();
        assert_eq!(left_out, trained);
    }
}
