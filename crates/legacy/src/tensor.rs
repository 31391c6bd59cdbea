//! A tensor of an old model in all the ways that it can be read, by its name in a GGUF.

use std::sync::Arc;

use gguf::{Error, TensorType};

use super::blocks::{Converted, StorageType};
use super::header::Program;
use super::names::{self, Meaning};
use super::parts::JoinedTensor;

/// A tensor in all the ways that it can be read.
pub(super) struct OldTensor {
    /// As the old file has it.
    pub(super) whole: JoinedTensor,
    /// Its name in a GGUF.
    pub(super) name: String,
    /// Elements of single precision, where it is in old blocks.
    pub(super) floats: Option<Arc<Converted>>,
    /// Blocks of today with the same levels, where there is such a type.
    pub(super) today: Option<(TensorType, Arc<Converted>)>,
}

/// The tensors that stay, by their names in a GGUF.
pub(super) fn named(program: Program, joined: Vec<JoinedTensor>) -> Result<Vec<OldTensor>, Error> {
    let mut tensors = Vec::new();
    for whole in joined {
        // Files with other tensors have been refused.
        let Some(Meaning::Named(name)) = names::meaning(program, &whole.name) else { continue };
        let (floats, today) = match whole.form {
            StorageType::Today(_) => (None, None),
            StorageType::Old(old) => (
                Some(Arc::new(Converted::floats(whole.bytes.clone(), old))),
                Converted::today(whole.bytes.clone(), old)
                    .map(|(ty, blocks)| (ty, Arc::new(blocks))),
            ),
        };
        tensors.push(OldTensor { whole, name, floats, today });
    }
    if ties_output(program) {
        let find = |name: &str| tensors.iter().position(|tensor: &OldTensor| tensor.name == name);
        if let (Some(output), Some(embedding)) = (find("output.weight"), find("token_embd.weight"))
            && same_bytes(&tensors[output].whole, &tensors[embedding].whole)?
        {
            tensors.remove(output);
        }
    }
    Ok(tensors)
}

/// Whether the output matrix of these models is usually the embedding, written out again by their
/// converters. A GGUF has it once.
fn ties_output(program: Program) -> bool {
    use Program::{Bloom, Falcon, Gpt2, Mpt, Replit};
    matches!(program, Gpt2 | Bloom | Falcon | Mpt | Replit)
}

fn same_bytes(a: &JoinedTensor, b: &JoinedTensor) -> Result<bool, Error> {
    const WINDOW: u64 = 1 << 20;
    let len = a.bytes.byte_len();
    if a.dims != b.dims || a.form.name() != b.form.name() || len != b.bytes.byte_len() {
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
