//! What an importance matrix says about each weight matrix (`tools/imatrix` of llama.cpp).

use super::Imatrix;

/// Figures of one weight matrix, over the mean squares of its columns (of all experts that were
/// used).
#[derive(Clone, Debug, PartialEq)]
pub struct Statistics {
    /// The weight matrix.
    pub name: String,
    /// Sum of the mean squares.
    pub sum: f32,
    /// The smallest.
    pub min: f32,
    /// The largest.
    pub max: f32,
    /// Their mean.
    pub mean: f32,
    /// Their standard deviation.
    pub deviation: f32,
    /// The share of columns above 1e-5, from 0 to 1.
    pub active: f32,
    /// How many columns there are.
    pub columns: usize,
    /// Entropy of their shares in the sum, in bits, from 0 to the logarithm of the columns.
    pub entropy: f32,
    /// The share of columns more than a standard deviation above the mean ("ZD", after
    /// arXiv:2406.17415), from 0 to 1.
    pub outstanding: f32,
    /// Cosine with the sums of the same matrix one block earlier; `None` if there is none or it was
    /// never used.
    pub similarity: Option<f32>,
}

/// The figures of all weight matrices that were used, in order of name.
pub fn statistics(imatrix: &Imatrix) -> Vec<Statistics> {
    imatrix.entries.keys().filter_map(|name| of_entry(imatrix, name)).collect()
}

fn of_entry(imatrix: &Imatrix, name: &str) -> Option<Statistics> {
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

/// The name with one less in the first `blk.N.` that is in it.
fn one_block_earlier(name: &str) -> Option<String> {
    name.match_indices("blk.").find_map(|(at, marker)| {
        let (before, number_on) = name.split_at(at + marker.len());
        let (number, rest) = number_on.split_once('.')?;
        let earlier = number.parse::<u32>().ok()?.checked_sub(1)?;
        Some(format!("{before}{earlier}.{rest}"))
    })
}
