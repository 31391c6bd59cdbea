//! Fuzz properties of checkpoint readers.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use gguf_checkpoint::Checkpoint;
use gguf_store::Source;

/// Maximum number of bytes read per tensor: a view cannot exceed its storage, but conversion to a
/// wider type can.
const MOST: u64 = 1 << 20;

/// Opens a checkpoint without a panic and reads every tensor of it. Returns the number of tensors.
pub fn open(bytes: &[u8]) -> usize {
    open_source(Arc::new(bytes.to_vec()))
}

/// Opens a PyTorch file of a version before 1.6 whose state dict is this pickle, with a storage of
/// some bytes.
pub fn pickle(bytes: &[u8]) -> usize {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let (version, machine, keys) =
        (b"\x80\x02M\xe9\x03.", b"\x80\x02}.", b"\x80\x02]X\x01\0\0\x000a.");
    let count = 6u64.to_le_bytes();
    open_source(Arc::new([&magic[..], version, machine, bytes, keys, &count, &[1; 48]].concat()))
}

/// Opens a safetensors file with this header, and as many zeros after it as it declares.
pub fn header(bytes: &[u8]) -> usize {
    open_source(Arc::new(Zeros::after(bytes)))
}

/// Opens a sharded checkpoint with this index; every file that it names has the tensors `a` and
/// `b`.
pub fn index(bytes: &[u8]) -> usize {
    let dir = tempfile::tempdir().unwrap();
    let name = "model.safetensors.index.json";
    std::fs::write(dir.path().join(name), bytes).unwrap();
    let present = BTreeSet::from([name, "x", "model.safetensors"].map(str::to_owned));
    let tensors = br#"{"a":{"dtype":"F32","shape":[],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[],"data_offsets":[4,8]}}"#;
    let opened =
        Checkpoint::open_with(dir.path(), &present, &|_| Ok(Arc::new(Zeros::after(tensors))));
    opened.map_or(0, |checkpoint| checkpoint.entries.len())
}

fn open_source(source: Arc<dyn Source>) -> usize {
    let Ok(checkpoint) = Checkpoint::open_source(Path::new("fuzz"), source) else { return 0 };
    for entry in &checkpoint.entries {
        let len =
            entry.tensor_type.byte_len(&entry.shape.iter().rev().copied().collect::<Vec<_>>());
        let mut tensor = vec![0; len.unwrap_or(0).min(MOST) as usize];
        checkpoint.files[entry.file].source.read_at(&mut tensor, entry.offset).unwrap();
    }
    checkpoint.entries.len()
}

/// Returns a safetensors header followed by zeros.
struct Zeros {
    header: Vec<u8>,
    len: u64,
}

impl Zeros {
    fn after(header: &[u8]) -> Self {
        let header = [&(header.len() as u64).to_le_bytes(), header].concat();
        // The largest number is the end of the data, or the header is invalid.
        let numbers = header[8..].split(|byte| !byte.is_ascii_alphanumeric());
        let numbers = numbers.filter_map(|digits| str::from_utf8(digits).ok()?.parse::<u64>().ok());
        let data = numbers.filter(|number| *number <= MOST).max().unwrap_or(0);
        Self { len: header.len() as u64 + data, header }
    }
}

impl Source for Zeros {
    fn byte_len(&self) -> u64 {
        self.len
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<(), gguf::Error> {
        assert!(offset + buffer.len() as u64 <= self.len);
        buffer.fill(0);
        let header = self.header.iter().skip(offset as usize);
        buffer.iter_mut().zip(header).for_each(|(out, byte)| *out = *byte);
        Ok(())
    }
}
