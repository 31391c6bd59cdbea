//! Per-matrix statistics of an importance matrix (`tools/imatrix` of llama.cpp).

use super::Imatrix;

/// Statistics of one weight matrix, over the mean squares of its columns (of all experts that were
/// used).
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// Name of the weight matrix.
    pub name: String,
    /// Sum of the mean squares.
    pub sum: f32,
    /// Minimum.
    pub min: f32,
    /// Maximum.
    pub max: f32,
    /// Mean.
    pub mean: f32,
    /// Standard deviation.
    pub deviation: f32,
    /// Fraction of columns above 1e-5, from 0 to 1.
    pub active: f32,
    /// Number of columns.
    pub columns: usize,
    /// Entropy of the normalized columns in bits, from 0 to the logarithm of the number of columns.
    pub entropy: f32,
    /// Fraction of columns more than one standard deviation above the mean ("ZD", after
    /// arXiv:2406.17415), from 0 to 1.
    pub outstanding: f32,
    /// Cosine similarity with the same matrix of the previous block; `None` if there is none or it
    /// was never used.
    pub similarity: Option<f32>,
}

/// Computes the statistics of all used weight matrices, in order of name.
pub fn statistics(imatrix: &Imatrix) -> Vec<Statistics> {
    imatrix.entries.keys().filter_map(|name| entry_statistics(imatrix, name)).collect()
}

fn entry_statistics(imatrix: &Imatrix, name: &str) -> Option<Statistics> {
    let entry = imatrix.entries.get(name)?;
    let used = entry.sums.chunks(entry.columns().max(1)).zip(&entry.counts);
    let x: Vec<f32> = used
        .filter(|(_, count)| **count > 0)
        .flat_map(|(sums, &count)| sums.iter().map(move |sum| sum / count as f32))
        .collect();
    let n = x.len() as f32;
    let (&first, _) = x.split_first()?;
    let sum: f32 = x.iter().sum();
    let mean = sum / n;
    let squares: f32 = x.iter().map(|v| v * v).sum();
    let deviation = (squares / n - mean * mean).max(0.0).sqrt();
    let shares = x.iter().map(|v| v / sum).filter(|share| *share > 0.0);
    let share_of = |count: usize| count as f32 / n;
    let stands_out = |v: f32| deviation > 0.0 && (v - mean) / deviation > 1.0;
    Some(Statistics {
        name: name.to_owned(),
        sum,
        min: x.iter().copied().fold(first, f32::min),
        max: x.iter().copied().fold(first, f32::max),
        mean,
        deviation,
        active: share_of(x.iter().filter(|v| v.abs() > 1e-5).count()),
        columns: x.len(),
        entropy: -shares.map(|share| share * share.log2()).sum::<f32>(),
        outstanding: share_of(x.iter().filter(|v| stands_out(**v)).count()),
        similarity: similarity(imatrix, name),
    })
}

fn similarity(imatrix: &Imatrix, name: &str) -> Option<f32> {
    let used = |name: &str| {
        let entry = imatrix.entries.get(name)?;
        entry.counts.iter().any(|&count| count > 0).then_some(&entry.sums)
    };
    let (a, b) = (used(name)?, used(&one_block_earlier(name)?)?);
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let length = dot(a, a).sqrt() * dot(b, b).sqrt();
    Some(if length > 0.0 { dot(a, b) / length } else { 0.0 })
}

/// Decrements the block number of the first `blk.N.` in the name.
fn one_block_earlier(name: &str) -> Option<String> {
    name.match_indices("blk.").find_map(|(at, marker)| {
        let (before, number_on) = name.split_at(at + marker.len());
        let (number, rest) = number_on.split_once('.')?;
        let earlier = number.parse::<u32>().ok()?.checked_sub(1)?;
        Some(format!("{before}{earlier}.{rest}"))
    })
}
