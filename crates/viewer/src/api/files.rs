//! Regions, bytes and named spans of the files.

use gguf::ByteOrder;
use gguf_kit::file_map::{Named, Region, named, regions};
use serde_json::{Value as Json, json};

use super::Request;
use super::tensors::MAX_TENSORS;
use crate::response::{ApiError, ApiResult, Response};

/// Maximum number of bytes per response.
const MAX_BYTES: u64 = 64 << 10;

/// Maximum number of bytes whose spans a response names.
const MAX_NAMED_BYTES: u64 = 16 << 10;

/// `GET map`.
pub fn map(request: &Request) -> ApiResult {
    let model = &request.model;
    let mut before = 0;
    let file = |number: usize| {
        let (file, gguf) = model.file(number)?;
        let span = |region: &Region| {
            json!({
                "start": region.span.start,
                "end": region.span.end,
                "kind": region.kind.name(),
                "n": region.tensor.map(|n| before + n),
            })
        };
        let regions = regions(gguf, file.source().byte_len());
        let mut spans: Vec<Json> = regions.iter().take(MAX_TENSORS as usize).map(span).collect();
        if let Some(rest) = regions.get(MAX_TENSORS as usize) {
            let end = file.source().byte_len();
            let rest = json!({ "start": rest.span.start, "end": end, "kind": "more", "n": null });
            spans.push(rest);
        }
        before += gguf.map_or(0, |gguf| gguf.tensors().len());
        let order = gguf.map(|gguf| match gguf.header().order() {
            ByteOrder::Little => "little",
            ByteOrder::Big => "big",
        });
        Ok(json!({
            "name": file.name().display().to_string(),
            "bytes": file.source().byte_len(),
            "version": gguf.map(|gguf| gguf.header().version()),
            "order": order,
            "alignment": gguf.map(|gguf| gguf.header().alignment().get()),
            "data_start": gguf.filter(|gguf| gguf.header_complete()).map(|gguf| gguf.data_start()),
            "spans": spans,
        }))
    };
    let files = (0..model.files.files().len()).map(file).collect::<Result<Json, ApiError>>()?;
    Ok(Response::Json(json!({ "files": files })))
}

/// Returns the requested byte range: file index, offset, length.
fn range(request: &Request, max: u64) -> Result<(usize, u64, u64), ApiError> {
    let query = request.query;
    let number = query.parsed_or("file", 0)?;
    let (file, _) = request.model.file(number)?;
    let offset: u64 = query.parsed_or("offset", 0)?;
    let length: u64 = query.parsed_or("length", 4096)?;
    if length > max {
        return Err(ApiError::bad_request(format!("`length` is {length}; the maximum is {max}")));
    }
    let left = file.source().byte_len().checked_sub(offset).ok_or_else(|| {
        let bytes = file.source().byte_len();
        ApiError::bad_request(format!("`offset` is {offset}; the file has {bytes} bytes"))
    })?;
    Ok((number, offset, length.min(left)))
}

/// `GET bytes`.
pub fn bytes(request: &Request) -> ApiResult {
    let (number, offset, length) = range(request, MAX_BYTES)?;
    let mut bytes = vec![0; length as usize];
    request.model.file(number)?.0.source().read_at(&mut bytes, offset)?;
    Ok(Response::bytes(bytes))
}

/// `GET spans`.
pub fn spans(request: &Request) -> ApiResult {
    let (number, offset, length) = range(request, MAX_NAMED_BYTES)?;
    let model = &request.model;
    let (file, gguf) = model.file(number)?;
    let earlier = (0..number).filter_map(|earlier| model.file(earlier).ok()?.1);
    let before: usize = earlier.map(|gguf| gguf.tensors().len()).sum();
    // The model has the keys of the first file without the `split.*` keys.
    let key_n = |entry: usize| {
        let (name, _) = gguf?.metadata().iter().nth(entry)?;
        model.model().ok()?.metadata().iter().position(|(other, _)| other == name)
    };
    let span = |named: &Named| {
        json!({
            "start": named.span.start,
            "end": named.span.end,
            "kind": named.kind.name(),
            "text": named.text,
            "key_n": named.entry.filter(|_| number == 0).and_then(key_n),
            "tensor_n": named.tensor.map(|n| before + n),
            "block": named.block,
        })
    };
    let found = named(gguf, file.source().byte_len(), offset..offset + length);
    Ok(Response::Json(json!({ "spans": found.iter().map(span).collect::<Json>() })))
}
