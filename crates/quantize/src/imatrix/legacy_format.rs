//! The legacy `.dat` format of importance matrices.
//!
//! ```text
//! entries i32, then per entry:  length i32  name  chunks i32  values i32  values f32 ...
//! at the end, optional:         chunks i32  length i32  dataset
//! ```
//!
//! A value is the mean of squares over all tokens, times the number of chunks.

use std::collections::BTreeMap;

use gguf::Error;

use super::{Entry, Imatrix};

/// Bytes that are not read yet.
struct Rest<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], String> {
        let (choices_taken, rest) = self.bytes.split_at_checked(n).ok_or_else(|| {
            let at = self.len - self.bytes.len();
            format!("{what} at byte {at} is truncated or not part of an importance matrix")
        })?;
        self.bytes = rest;
        Ok(choices_taken)
    }

    fn number(&mut self, what: &str) -> Result<usize, String> {
        let bytes = self.take(4, what)?;
        let number = bytes.first_chunk().map_or(-1, |bytes| i32::from_le_bytes(*bytes));
        usize::try_from(number).map_err(|_| format!("{what} is {number}"))
    }
}

/// Reads the file, or returns a description of the error.
pub(super) fn read(bytes: &[u8]) -> Result<Imatrix, String> {
    let mut rest = Rest { bytes, len: bytes.len() };
    let count = rest.number("the number of entries")?;
    if count == 0 {
        return Err("it has no entries".into());
    }
    let mut entries = BTreeMap::new();
    for i in 0..count {
        let len = rest.number("the length of a name")?;
        let name = rest.take(len, "a name")?;
        let name = String::from_utf8(name.to_vec())
            .map_err(|_| format!("the name of entry {i} is not valid UTF-8"))?;
        let chunks = rest.number("the number of chunks")?;
        let values = rest.number("the number of values")?;
        if values == 0 {
            return Err(format!("`{name}` has no values"));
        }
        let values = rest.take(values.saturating_mul(4), "the values of an entry")?;
        let sums = values.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        entries.insert(name, Entry { sums, counts: vec![chunks as u64] });
    }
    let (mut chunk_count, mut datasets) = (0, Vec::new());
    if let Ok(chunks) = rest.number("the number of chunks") {
        chunk_count = chunks as u32;
        let name = rest.number("a length").and_then(|len| rest.take(len, "the dataset"));
        if let Ok(name @ [_, ..]) = name {
            datasets.push(String::from_utf8_lossy(name).into_owned());
        }
    }
    Ok(Imatrix { datasets, chunk_count, chunk_size: None, fingerprint: None, entries })
}

/// Encodes the file, byte-identical to llama.cpp's tool.
pub(super) fn encode(imatrix: &Imatrix) -> Result<Vec<u8>, Error> {
    let used = |entry: &&Entry| entry.counts.iter().any(|&count| count > 0);
    let number = |n: usize| i32::try_from(n).unwrap_or(i32::MAX).to_le_bytes();
    let count = imatrix.entries.values().filter(used).count();
    if count == 0 {
        let what = "no matrix received any tokens; there is nothing to write";
        return Err(Error::request("imatrix-unused", what, ""));
    }
    let mut out = number(count).to_vec();
    for (name, entry) in imatrix.entries.iter().filter(|(_, entry)| used(entry)) {
        let max = entry.counts.iter().copied().max().unwrap_or(0);
        // Converts tokens to chunks, rounding up.
        let chunks = max.div_ceil(imatrix.chunk_size.unwrap_or(1).max(1).into());
        out.extend(number(name.len()));
        out.extend(name.as_bytes());
        out.extend(number(chunks as usize));
        out.extend(number(entry.sums.len()));
        let columns = entry.columns().max(1);
        for (sums, &count) in entry.sums.chunks(columns).zip(&entry.counts) {
            for sum in sums {
                let mean = if count == 0 { 1.0 } else { sum / count as f32 };
                out.extend((mean * chunks as f32).to_le_bytes());
            }
        }
    }
    out.extend(number(imatrix.chunk_count as usize));
    let dataset = imatrix.datasets.last().map_or("", String::as_str);
    out.extend(number(dataset.len()));
    out.extend(dataset.as_bytes());
    Ok(out)
}
