//! The GGUF format of importance matrices: `NAME.in_sum2` and `NAME.counts`, both F32.

use std::collections::BTreeMap;

use gguf::endian::swap_blocks;
use gguf::{
    Array, ByteOrder, Bytes, Gguf, Header, Metadata, RawHeader, Shape, TensorInfo, TensorType,
    write_header,
};

use super::{Entry, Imatrix};

const DATASETS: &str = "imatrix.datasets";
const CHUNK_COUNT: &str = "imatrix.chunk_count";
const CHUNK_SIZE: &str = "imatrix.chunk_size";
const FINGERPRINT: &str = "gguf_kit.imatrix.fingerprint";
const SUMS: &str = ".in_sum2";
const COUNTS: &str = ".counts";

/// Reads the file, or returns a description of the error.
pub(super) fn read(bytes: &Bytes) -> Result<Imatrix, String> {
    let file = Gguf::read(bytes).map_err(|error| error.to_string())?;
    let metadata = file.metadata();
    let number = |key: &str| {
        let number = metadata.u64(key).and_then(|n| u32::try_from(n).ok());
        number.ok_or_else(|| format!("key `{key}` is missing: it is not an importance matrix"))
    };
    let strings = metadata
        .array(DATASETS)
        .and_then(Array::strings)
        .ok_or_else(|| format!("key `{DATASETS}` is missing: it is not an importance matrix"))?;
    let datasets = strings.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
    let (chunk_count, chunk_size) = (number(CHUNK_COUNT)?, number(CHUNK_SIZE)?);
    let floats = |tensor: &TensorInfo| {
        let data = file.data(tensor).filter(|_| tensor.tensor_type == TensorType::F32);
        let data = data.ok_or_else(|| format!("tensor `{}` is not F32", tensor.name))?;
        let mut data = data.to_vec();
        if file.header().order() == ByteOrder::Big {
            swap_blocks(TensorType::F32, &mut data);
        }
        let mut floats = vec![0.0; data.len() / 4];
        gguf_quant::decode_row(TensorType::F32, &data, &mut floats)
            .map_err(|fault| fault.to_string())?;
        Ok::<_, String>(floats)
    };
    let index = file.header().index();
    let mut entries = BTreeMap::new();
    for tensor in file.tensors() {
        let Some(name) = tensor.name.strip_suffix(SUMS) else {
            match tensor.name.strip_suffix(COUNTS) {
                Some(name) if !index.contains_key(format!("{name}{SUMS}").as_str()) => {
                    return Err(format!("`{name}` has counts and no sums"));
                }
                _ => continue,
            }
        };
        let counts = index.get(format!("{name}{COUNTS}").as_str());
        let counts = floats(counts.ok_or_else(|| format!("`{name}` has sums and no counts"))?)?;
        let sums = floats(tensor)?;
        if counts.is_empty() || sums.is_empty() || !sums.len().is_multiple_of(counts.len()) {
            return Err(format!("`{name}` has {} sums for {} counts", sums.len(), counts.len()));
        }
        if let Some(count) = counts.iter().find(|count| !(**count >= 0.0 && count.is_finite())) {
            return Err(format!("`{name}` has a count of {count}"));
        }
        let counts = counts.into_iter().map(|count| count.round() as u64).collect();
        entries.insert(name.to_owned(), Entry { sums, counts });
    }
    if entries.is_empty() {
        return Err("it has no sums".into());
    }
    let fingerprint = metadata.str(FINGERPRINT).map(str::to_owned);
    Ok(Imatrix { datasets, chunk_count, chunk_size: Some(chunk_size), fingerprint, entries })
}

/// Encodes the file, byte-identical to llama.cpp's tool if there is no fingerprint.
pub(super) fn encode(imatrix: &Imatrix) -> Result<Vec<u8>, gguf::Error> {
    let mut metadata = Metadata::new();
    metadata.push("general.type", "imatrix");
    metadata.push(DATASETS, Array::from_strings(&imatrix.datasets));
    metadata.push(CHUNK_COUNT, imatrix.chunk_count);
    metadata.push(CHUNK_SIZE, imatrix.chunk_size.unwrap_or(0));
    if let Some(fingerprint) = &imatrix.fingerprint {
        metadata.push(FINGERPRINT, fingerprint.as_str());
    }
    let mut draft = RawHeader { metadata, ..RawHeader::default() };
    let mut data: Vec<Vec<f32>> = Vec::new();
    for (name, entry) in &imatrix.entries {
        let counts = entry.counts.iter().map(|&count| count as f32).collect();
        let experts = entry.counts.len() as u64;
        for (suffix, columns, floats) in
            [(SUMS, entry.columns() as u64, entry.sums.clone()), (COUNTS, 1, counts)]
        {
            let too_many = || {
                let what = format!("`{name}` has too many sums");
                gguf::Error::request("imatrix-damaged", what, "")
            };
            let shape = match experts {
                1 => Shape::new(&[columns]),
                _ => Shape::new(&[columns, experts]),
            };
            draft.tensors.push(TensorInfo {
                name: format!("{name}{suffix}"),
                shape: shape.ok_or_else(too_many)?,
                tensor_type: TensorType::F32,
                offset: 0,
                opaque_len: None,
            });
            data.push(floats);
        }
    }
    draft.lay_out()?;
    let header = Header::new(draft)?;
    let mut bytes = write_header(&header)?;
    let start = bytes.len();
    for (tensor, floats) in header.tensors().iter().zip(data) {
        bytes.resize(start + tensor.offset as usize, 0);
        bytes.extend(floats.iter().flat_map(|v| v.to_le_bytes()));
    }
    bytes.resize(header.file_len(start)? as usize, 0);
    Ok(bytes)
}
