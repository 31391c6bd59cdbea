//! What must hold for any bytes taken as a file of weights.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use gguf_checkpoint::Checkpoint;
use gguf_store::Source;

/// The most bytes of a tensor that are read: a view may not be larger than its storage, but
/// narrow numbers become wider.
const MOST: u64 = 1 << 20;

/// Opening never panics, and every tensor of what could be opened can be read. Returns how many
/// there are.
pub fn open(bytes: &[u8]) -> usize {
    open_source(Arc::new(bytes.to_vec()))
}

/// The same of a file of before PyTorch 1.6 whose state dict is this pickle, with a storage of some
/// bytes.
pub fn pickle(bytes: &[u8]) -> usize {
    let magic = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.";
    let (version, machine, keys) =
        (b"\x80\x02M\xe9\x03.", b"\x80\x02}.", b"\x80\x02]X\x01\0\0\x000a.");
    let count = 6u64.to_le_bytes();
    open_source(Arc::new([&magic[..], version, machine, bytes, keys, &count, &[1; 48]].concat()))
}

/// The same of a safetensors file with this header, and as many zeros behind it as it asks for.
pub fn header(bytes: &[u8]) -> usize {
    open_source(Arc::new(Zeros::after(bytes)))
}

/// Weights whose index is this are opened, or not, without harm; whatever file it names has two
/// tensors `a` and `b`.
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

/// A safetensors header, and zeros.
struct Zeros {
    header: Vec<u8>,
    len: u64,
}

impl Zeros {
    fn after(header: &[u8]) -> Self {
        let header = [&(header.len() as u64).to_le_bytes(), header].concat();
        // The largest number is where the data end, or the header is of no use.
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
