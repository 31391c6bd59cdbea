//! Quantization blocks of tensors, bit by bit.

use gguf_kit::Error;
use gguf_kit::values::{Matrix, Numbers, Scales};
use gguf_quant::{BlockLayout, FieldItem, block_layout};
use serde_json::{Value as Json, json};

use super::Request;
use crate::response::{ApiError, ApiResult, Response, hex};

/// Largest integer that a JSON number (F64) represents exactly.
const MAX_EXACT: u64 = 1 << 53;

/// Returns the layout that all blocks of a type share.
pub fn layout_json(layout: &BlockLayout) -> Json {
    let field = |field: &gguf_quant::Field| json!({ "name": field.name, "about": field.about, "count": field.count, "kind": field.kind.name() });
    json!({
        "formula": layout.formula,
        "scales": Scales::names(layout).collect::<Vec<_>>(),
        "fields": layout.fields.iter().map(field).collect::<Json>(),
    })
}

/// `GET tensor/block`.
pub fn block(request: &Request) -> ApiResult {
    let (_, tensor) = request.model.tensor(&request.query.selector()?)?;
    let index: u64 = request.query.required("index")?;
    let matrix = Matrix::of(tensor)?;
    let (weights, bytes) = matrix.block();
    let per_row = matrix.blocks_per_row().max(1);
    let (row, at) = (index / per_row, index % per_row);
    if row >= matrix.rows() {
        let message =
            format!("block {index} does not exist; there are {}", matrix.rows() * per_row);
        return Err(Error::request("name-not-found", message, "").into());
    }
    let layout = block_layout(tensor.info.tensor_type)
        .ok_or_else(|| ApiError::internal("the layout of these blocks is unknown"))?;
    let block = matrix.blocks(row, at..at + 1)?;
    let mut numbers = Vec::new();
    matrix.read(row, at * weights..(at + 1) * weights, &mut numbers)?;
    let fields = layout.fields.iter().zip(layout.items(&block)).map(|(field, items)| {
        json!({
            "name": field.name,
            "about": field.about,
            "kind": field.kind.name(),
            "items": items.iter().map(item).collect::<Json>(),
        })
    });
    let weights_json = numbers
        .iter()
        .enumerate()
        .map(|(w, value)| json!({ "value": value, "items": layout.items_of_weight(w) }));
    Ok(Response::Json(json!({
        "index": index,
        "row": row,
        "column": at * weights,
        "file": tensor.shard,
        "offset": tensor.offset + index * bytes,
        "hex": hex(&block),
        "formula": layout.formula,
        "fields": fields.collect::<Json>(),
        "weights": weights_json.collect::<Json>(),
    })))
}

fn item(item: &FieldItem) -> Json {
    let raw = match item.raw {
        number if number > MAX_EXACT => number.to_string().into(),
        number => Json::from(number),
    };
    json!({ "bits": item.bits, "raw": raw, "value": item.value })
}
