//! An adapter from two models: what was trained, as far as a low rank can hold it.
//!
//! Per matrix the difference is approximated by a product of two narrow ones: a randomized range
//! finder with power iterations, then the singular values of what remains (Halko, Martinsson and
//! Tropp, "Finding structure with randomness", algorithms 4.4 and 5.1). The same models give the
//! same adapter.

use gguf::{ByteOrder, Error, Metadata, Shape, TensorType};
use gguf_pipeline::{Content, Item, Job, Tensor};
use gguf_store::{Model, ModelTensor, Progress};
use nalgebra::DMatrix;

use super::merge::floats;
use super::{ALPHA, BASE_DIGEST, SUFFIXES, base_digest};

/// Columns sampled beyond the rank.
const OVERSAMPLING: usize = 8;

/// How often the sample is passed through the difference, to sharpen what is large in it.
const POWER_ITERATIONS: usize = 2;

/// An adapter that is ready to be written.
pub struct Extraction {
    /// What to write.
    pub job: Job,
    /// Per matrix the share of the squared difference that the adapter holds, from 0 to 1.
    pub held: Vec<(String, f64)>,
    /// What the user should know.
    pub notes: Vec<String>,
}

/// The matrices of the blocks, which adapters adapt.
pub(crate) fn matrices(model: &Model) -> impl Iterator<Item = &ModelTensor> {
    model.tensors().iter().filter(|tensor| {
        let info = &tensor.info;
        info.name.starts_with("blk.") && info.name.ends_with(".weight") && info.shape.len() > 1
    })
}

/// Computes an adapter of `rank` that turns `base` into `tuned` as nearly as it can. Holds one
/// matrix at a time, as floats.
///
/// `progress` is told the bytes of each matrix.
///
/// # Errors
/// If they are not of the same architecture and shapes or are equal, if one cannot be read,
/// or if `progress` ended the work.
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
            "one is of the architecture {architecture}, one of {other}"
        )));
    }
    let total = matrices(tuned).filter_map(|tensor| tensor.info.byte_len()).sum();
    progress.begin("extracting", total);
    let index = base.index();
    let (mut items, mut held, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for tensor in matrices(tuned) {
        let name = &*tensor.info.name;
        let before = index.get(name).filter(|before| before.info.shape == tensor.info.shape);
        let Some(before) = before else {
            return Err(different(format!("the base model has no `{name}` of the same shape")));
        };
        if let Some((share, pair)) = low_rank(before, tensor, rank)? {
            held.push((name.to_owned(), share));
            items.extend(pair.map(|tensor| Item::new(tensor, TensorType::F32)));
        }
        progress.step(tensor.info.byte_len().unwrap_or(0))?;
    }
    if items.is_empty() {
        return Err(different("their matrices are equal".into()));
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
            notes.push(format!("`{name}` differs too, and an adapter cannot hold that"));
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
        held,
        notes,
    })
}

fn different(what: String) -> Error {
    let what = format!("no adapter leads from one model to the other: {what}");
    Error::request("adapter-models-differ", what, "name a model and the one it was tuned from")
}

/// The pair for a matrix, and the share of the difference that it holds; `None` if there is none.
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
    let squares = |values: &[f32]| values.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>();
    let total = squares(&difference);
    if total == 0.0 {
        return Ok(None);
    }
    let (mut a, mut b, mut held) = (Vec::new(), Vec::new(), 0.0);
    for matrix in difference.chunks_exact(columns * rows) {
        // In the order of nalgebra, column by column, our rows are columns.
        let matrix = DMatrix::from_column_slice(columns, rows, matrix);
        let (left, values, right) = largest(&matrix, rank);
        held += squares(&values);
        let root = |k: usize| values[k].max(0.0).sqrt();
        for k in 0..rank {
            a.extend(left.column(k).iter().map(|x| x * root(k)));
        }
        for row in 0..rows {
            b.extend((0..rank).map(|k| right[(k, row)] * root(k)));
        }
    }
    let dims = |dims: [u64; 2]| {
        let all = [&dims[..], &shape[2..]].concat();
        Shape::new(&all).unwrap_or_else(|| unreachable!("as many dimensions as the tensor has"))
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
    Ok(Some((held / total, pair)))
}

/// The largest singular values of a matrix, with their vectors: columns of the first, rows of the
/// last.
fn largest(matrix: &DMatrix<f32>, rank: usize) -> (DMatrix<f32>, Vec<f32>, DMatrix<f32>) {
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
    let svd = range.tr_mul(matrix).svd(true, true);
    // Both were asked for.
    let left = svd.u.unwrap_or_default();
    let right = svd.v_t.unwrap_or_default();
    let values = svd.singular_values.iter().copied().take(rank).collect();
    (range * left, values, right)
}

/// 1 or -1, by the generator of Marsaglia ("Xorshift RNGs", 2003).
fn random_sign(state: &mut u64) -> f32 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    if *state >> 63 == 0 { 1.0 } else { -1.0 }
}
