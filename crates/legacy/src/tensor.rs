//! A tensor of a legacy model, with its GGUF name and its decoded forms.

use std::sync::Arc;

use gguf::{Error, TensorType};

use super::blocks::{ConvertedBlocks, StorageType};
use super::header::ModelFamily;
use super::names::{self, NameMapping};
use super::parts::JoinedTensor;

/// A tensor of a legacy model.
pub(super) struct LegacyTensor {
    /// The stored tensor.
    pub(super) joined: JoinedTensor,
    /// Its GGUF name.
    pub(super) name: String,
    /// Weights in single precision, if the tensor is stored in legacy blocks.
    pub(super) decoded: Option<Arc<ConvertedBlocks>>,
    /// The quants repacked in a current type, if there is one.
    pub(super) repacked: Option<(TensorType, Arc<ConvertedBlocks>)>,
}

/// The tensors to convert, with their GGUF names.
pub(super) fn map_tensors(
    family: ModelFamily,
    stored: Vec<JoinedTensor>,
) -> Result<Vec<LegacyTensor>, Error> {
    let mut tensors = Vec::new();
    for joined in stored {
        // Files with unknown tensors were rejected when they were parsed.
        let Some(NameMapping::Renamed(name)) = names::map_name(family, &joined.name) else {
            continue;
        };
        let (decoded, repacked) = match joined.storage {
            StorageType::Current(_) => (None, None),
            StorageType::Legacy(block) => (
                Some(Arc::new(ConvertedBlocks::decoded(joined.bytes.clone(), block))),
                ConvertedBlocks::repacked(joined.bytes.clone(), block)
                    .map(|(ty, blocks)| (ty, Arc::new(blocks))),
            ),
        };
        tensors.push(LegacyTensor { joined, name, decoded, repacked });
    }
    if can_tie_output(family) {
        let find =
            |name: &str| tensors.iter().position(|tensor: &LegacyTensor| tensor.name == name);
        if let (Some(output), Some(embedding)) = (find("output.weight"), find("token_embd.weight"))
            && same_bytes(&tensors[output].joined, &tensors[embedding].joined)?
        {
            tensors.remove(output);
        }
    }
    Ok(tensors)
}

/// Whether models of the family usually tie the output matrix to the embedding. Legacy converters
/// stored it twice; a GGUF stores it once.
fn can_tie_output(family: ModelFamily) -> bool {
    use ModelFamily::{Bloom, Falcon, Gpt2, Mpt, Replit};
    matches!(family, Gpt2 | Bloom | Falcon | Mpt | Replit)
}

fn same_bytes(a: &JoinedTensor, b: &JoinedTensor) -> Result<bool, Error> {
    const WINDOW: u64 = 1 << 20;
    let len = a.bytes.byte_len();
    if a.dims != b.dims || a.storage.name() != b.storage.name() || len != b.bytes.byte_len() {
        return Ok(false);
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    for start in (0..len).step_by(WINDOW as usize) {
        for (tensor, buffer) in [(a, &mut left), (b, &mut right)] {
            buffer.resize(WINDOW.min(len - start) as usize, 0);
            tensor.bytes.read_at(buffer, start)?;
        }
        if left != right {
            return Ok(false);
        }
    }
    Ok(true)
}
