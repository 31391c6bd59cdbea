//! Error statistics of a tensor relative to its original.

use gguf::Error;
use gguf_quant::Difference;
use gguf_store::Progress;

use super::numbers::{Differences, Numbers};
use super::pieces::Pieces;

/// Returns the difference of the second tensor from the first, of all weights or of an evenly spread sample of about
/// `budget`, and whether it covers all weights.
///
/// # Errors
/// If data cannot be read, or `progress` stopped the work.
pub fn error_figures(
    differences: &Differences,
    budget: u64,
    progress: &dyn Progress,
) -> Result<(Difference, bool), Error> {
    let (original, other) = differences.sides();
    let pieces = Pieces::of(differences, 0..differences.rows(), budget);
    let mut sum = Difference::default();
    for part in pieces.visit(progress, Difference::default, |sum: &mut Difference, place| {
        let bytes = |matrix: &super::Matrix| {
            let (len, _) = matrix.block();
            let further = (place.rows.end - place.rows.start - 1) * matrix.blocks_per_row();
            let end = place.columns.end.div_ceil(len) + further;
            matrix.blocks(place.rows.start, place.columns.start / len..end)
        };
        let types = (original.tensor().info.tensor_type, other.tensor().info.tensor_type);
        let (a, b) = (bytes(original)?, bytes(other)?);
        let rows = place.rows.end - place.rows.start;
        let count = rows * (place.columns.end - place.columns.start);
        let found = gguf_quant::difference(count, (types.0, &a), (types.1, &b));
        let unusable = |fault: gguf_quant::CodecError| {
            Error::weights(&original.tensor().info.name, fault.to_string())
        };
        sum.add(&found.map_err(unusable)?);
        Ok(count)
    })? {
        sum.add(&part);
    }
    Ok((sum, pieces.is_all()))
}
