//! Elements of the tensors of adapters.

use gguf::Error;
use gguf_store::ModelTensor;

/// Returns all elements of a tensor.
///
/// # Errors
/// `weights-unusable` if its type cannot be decoded; errors of reading.
pub fn values(tensor: &ModelTensor) -> Result<Vec<f32>, Error> {
    let info = &tensor.info;
    let unusable = |what: String| Error::weights(&info.name, what);
    let size = |n: Option<u64>| {
        n.and_then(|n| usize::try_from(n).ok()).ok_or_else(|| unusable("is too large".into()))
    };
    let mut values = vec![0.0; size(info.shape.elements())?];
    let mut owned = Vec::new();
    let bytes = match tensor.data() {
        Some(data) => data,
        None => {
            owned.resize(size(info.byte_len())?, 0);
            tensor.read_at(&mut owned, 0)?;
            &owned
        }
    };
    gguf_quant::decode_row(info.tensor_type, bytes, &mut values)
        .map_err(|fault| unusable(fault.to_string()))?;
    Ok(values)
}
