//! What must hold for any bytes taken as a file of weights.

use std::path::Path;
use std::sync::Arc;

use gguf_convert::source::Checkpoint;

/// The most bytes of a tensor that are read: a view may not be larger than its storage, but
/// narrow numbers become wider.
const MOST: u64 = 1 << 20;

/// Opening never panics, and every tensor of what could be opened can be read. Returns how many
/// there are.
pub fn open(bytes: &[u8]) -> usize {
    let Ok(checkpoint) = Checkpoint::open_source(Path::new("fuzz"), Arc::new(bytes.to_vec()))
    else {
        return 0;
    };
    for entry in &checkpoint.entries {
        let len =
            entry.tensor_type.byte_len(&entry.shape.iter().rev().copied().collect::<Vec<_>>());
        let mut tensor = vec![0; len.unwrap_or(0).min(MOST) as usize];
        checkpoint.files[entry.file].source.read_at(&mut tensor, entry.offset).unwrap();
    }
    checkpoint.entries.len()
}
