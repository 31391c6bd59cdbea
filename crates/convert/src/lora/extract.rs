//! Extraction of a LoRA adapter from a base model and a fine-tuned model.
//!
//! The difference of each matrix is approximated by a low-rank product: a randomized range finder with power
//! iterations, then a singular value decomposition (Halko, Martinsson and Tropp, "Finding structure with randomness",
//! algorithms 4.4 and 5.1). The extraction is deterministic.

use gguf::{ByteOrder, Error, Metadata, Shape, TensorType};
use gguf_lora::{ALPHA, BASE_DIGEST, SUFFIXES, base_digest, values as floats};
use gguf_pipeline::{Content, Item, Job, Tensor};
use gguf_store::{Model, ModelTensor, Progress};
use nalgebra::DMatrix;

/// Number of columns sampled in addition to the rank.
const OVERSAMPLING: usize = 8;

/// Number of power iterations, which amplify large singular values in the sample.
const POWER_ITERATIONS: usize = 2;

/// Maximum number of iterations of a singular value decomposition; a few per singular value are enough.
const MAX_ITERATIONS: usize = 100_000;

/// Extracted adapter.
pub struct Extraction {
    /// Job that writes the adapter.
    pub job: Job,
    /// Share of the squared difference of each matrix that the adapter captures, from 0 to 1.
    pub captured: Vec<(String, f64)>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// Returns the weight matrices of the layers, which adapters adapt.
pub(crate) fn matrices(model: &Model) -> impl Iterator<Item = &ModelTensor> {
    model.tensors().iter().filter(|tensor| {
        let info = &tensor.info;
        info.name.starts_with("blk.") && info.name.ends_with(".weight") && info.shape.len() > 1
    })
}

/// Computes an adapter of `rank` that approximates the difference between `base` and `tuned`. Holds one matrix in
/// memory at a time, as F32.
///
/// Reports the bytes of each matrix to `progress`.
///
/// # Errors
/// If the models differ in architecture or shapes or are equal, if a tensor cannot be read, or if `progress` cancels.
pub fn extract(
    base: &Model,
    tuned: &Model,
    rank: usize,
    progress: &dyn Progress,
) -> Result<Extraction, Error> {
    let [architecture, other] =
        [base, tuned].map(|model| model.metadata().architecture().unwrap_or_default());
    if architecture != other {
        return Err(different(format!(
            "the base model has the architecture {architecture}, the tuned model has {other}"
        )));
    }
    let total = matrices(tuned).filter_map(|tensor| tensor.info.byte_len()).sum();
    progress.begin("extracting", total);
    let index = base.index();
    let (mut items, mut captured, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for tensor in matrices(tuned) {
        let name = &*tensor.info.name;
        let before = index.get(name).filter(|before| before.info.shape == tensor.info.shape);
        let Some(before) = before else {
            return Err(different(format!(
                "the base model has no tensor `{name}` of the same shape"
            )));
        };
        if let Some((share, pair)) = low_rank(before, tensor, rank)? {
            captured.push((name.to_owned(), share));
            items.extend(pair.map(|tensor| Item::new(tensor, TensorType::F32)));
        }
        progress.step(tensor.info.byte_len().unwrap_or(0))?;
    }
    if items.is_empty() {
        return Err(different("all matrices are equal".into()));
    }
    let left_out = tuned
        .tensors()
        .iter()
        .filter(|tensor| matrices(tuned).all(|matrix| matrix.info.name != tensor.info.name));
    for tensor in left_out {
        let name = &*tensor.info.name;
        let before = index.get(name).filter(|before| before.info.shape == tensor.info.shape);
        let same = match before {
            Some(before) => floats(before)? == floats(tensor)?,
            None => false,
        };
        if !same {
            notes.push(format!("`{name}` differs too, but adapters do not support it"));
        }
    }
    let mut metadata = Metadata::new();
    metadata.push("general.architecture", architecture.to_owned());
    metadata.push("general.type", "adapter");
    metadata.push("adapter.type", "lora");
    let name_of = |model: &Model| model.metadata().str("general.name").map(str::to_owned);
    if let Some(name) = name_of(tuned) {
        metadata.push("general.name", format!("{name} rank {rank}"));
    }
    metadata.push("general.base_model.count", 1u32);
    if let Some(name) = name_of(base) {
        metadata.push("general.base_model.0.name", name);
    }
    metadata.push(ALPHA, rank as f32);
    metadata.push(
        BASE_DIGEST,
        base_digest(base.tensors().iter().map(|t| (&*t.info.name, &*t.info.shape))),
    );
    Ok(Extraction {
        job: Job { metadata, items, check_finite: true, order: ByteOrder::Little },
        captured,
        notes,
    })
}

fn different(what: String) -> Error {
    let what = format!("cannot extract an adapter: {what}");
    Error::request(
        "adapter-models-differ",
        what,
        "specify a model and the model that it was tuned from",
    )
}

/// Returns the pair for a matrix, and the share of the difference that it captures; `None` if there is no difference.
fn low_rank(
    before: &ModelTensor,
    after: &ModelTensor,
    rank: usize,
) -> Result<Option<(f64, [Tensor; 2])>, Error> {
    let shape = &after.info.shape;
    let (columns, rows) = (shape.row_len() as usize, shape.get(1).copied().unwrap_or(1) as usize);
    let rank = rank.min(columns).min(rows);
    let mut difference = floats(after)?;
    difference.iter_mut().zip(floats(before)?).for_each(|(x, y)| *x -= y);
    let name = &after.info.name;
    if let Some(number) = difference.iter().find(|number| !number.is_finite()) {
        let what = format!("its difference from the base model has an element {number}");
        return Err(Error::weights(name, what));
    }
    let largest_element = difference.iter().fold(0.0, |max: f32, x| max.max(x.abs()));
    if largest_element == 0.0 {
        return Ok(None);
    }
    // Squares of elements up to 1 do not overflow in the decomposition.
    difference.iter_mut().for_each(|x| *x /= largest_element);
    let squares = |values: &[f32]| values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let total = squares(&difference);
    let (mut a, mut b, mut captured) = (Vec::new(), Vec::new(), 0.0);
    for matrix in difference.chunks_exact(columns * rows) {
        // nalgebra is column-major, so the rows of the tensor are columns.
        let matrix = DMatrix::from_column_slice(columns, rows, matrix);
        let Some((left, values, right)) = largest(&matrix, rank) else {
            let what = "the singular value decomposition of its difference does not converge";
            return Err(Error::weights(name, what));
        };
        captured += squares(&values);
        let root = |k: usize| values[k].max(0.0).sqrt() * largest_element.sqrt();
        for k in 0..rank {
            a.extend(left.column(k).iter().map(|x| x * root(k)));
        }
        for row in 0..rows {
            b.extend((0..rank).map(|k| right[(k, row)] * root(k)));
        }
    }
    let dims = |dims: [u64; 2]| {
        let all = [&dims[..], &shape[2..]].concat();
        Shape::new(&all)
            .unwrap_or_else(|| unreachable!("the pair has the number of dimensions of the tensor"))
    };
    let tensor = |suffix: &str, shape, values| Tensor {
        name: format!("{}{suffix}", after.info.name),
        shape,
        stored_type: TensorType::F32,
        content: Content::Values(values),
    };
    let [suffix_a, suffix_b] = SUFFIXES;
    let pair = [
        tensor(suffix_a, dims([columns as u64, rank as u64]), a),
        tensor(suffix_b, dims([rank as u64, rows as u64]), b),
    ];
    Ok(Some((captured / total, pair)))
}

/// Returns the left singular vectors (as columns), the singular values and the right singular vectors (as rows) of
/// the `rank` largest singular values; `None` if the decomposition does not converge.
fn largest(matrix: &DMatrix<f32>, rank: usize) -> Option<(DMatrix<f32>, Vec<f32>, DMatrix<f32>)> {
    let (rows, columns) = matrix.shape();
    let sampled = (rank + OVERSAMPLING).min(rows).min(columns);
    let mut signs = 0x9e37_79b9_7f4a_7c15u64;
    let mut sample = matrix * DMatrix::from_fn(columns, sampled, |_, _| random_sign(&mut signs));
    for _ in 0..POWER_ITERATIONS {
        let range = sample.qr().q();
        let back = matrix.tr_mul(&range).qr().q();
        sample = matrix * back;
    }
    let range = sample.qr().q();
    let svd = range.tr_mul(matrix).try_svd(true, true, f32::EPSILON * 5.0, MAX_ITERATIONS)?;
    // `svd` computes both because both flags are true.
    let left = svd.u.unwrap_or_default();
    let right = svd.v_t.unwrap_or_default();
    let values = svd.singular_values.iter().copied().take(rank).collect();
    Some((range * left, values, right))
}

/// Returns 1 or -1 from the generator of Marsaglia ("Xorshift RNGs", 2003).
fn random_sign(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    if *state >> 63 == 0 { 1.0 } else { -1.0 }
}
