//! Blocks of tensors: what their bits mean.

use gguf_kit::Error;
use gguf_kit::values::{Matrix, Numbers, Scales};
use gguf_quant::{Item, Layout, layout};
use serde_json::{Value as Json, json};

use super::Question;
use crate::answer::{Answer, Answered, Failure, hex};

/// From here on integers are not exact in the numbers of most programs.
const INEXACT: u64 = 1 << 53;

/// What all blocks of a type have in common.
pub fn layout_json(layout: &Layout) -> Json {
    let field = |field: &gguf_quant::Field| json!({ "name": field.name, "about": field.about, "count": field.count, "kind": field.kind.name() });
    json!({
        "formula": layout.formula,
        "scales": Scales::names(layout).collect::<Vec<_>>(),
        "fields": layout.fields.iter().map(field).collect::<Json>(),
    })
}

/// `GET tensor/block`.
pub fn block(question: &Question) -> Answered {
    let (_, tensor) = question.model.tensor(&question.ask.named()?)?;
    let index: u64 = question.ask.needed("index")?;
    let matrix = Matrix::of(tensor)?;
    let (weights, bytes) = matrix.block();
    let of_row = matrix.blocks_per_row().max(1);
    let (row, at) = (index / of_row, index % of_row);
    if row >= matrix.rows() {
        let what = format!("there is no block {index}: there are {}", matrix.rows() * of_row);
        return Err(Error::request("name-not-found", what, "").into());
    }
    let layout = layout(tensor.info.tensor_type)
        .ok_or_else(|| Failure::broken("there is no layout of these blocks"))?;
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
        .map(|(w, value)| json!({ "value": value, "items": layout.of_weight(w) }));
    Ok(Answer::Json(json!({
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

fn item(item: &Item) -> Json {
    let raw = match item.raw {
        number if number > INEXACT => number.to_string().into(),
        number => Json::from(number),
    };
    json!({ "bits": item.bits, "raw": raw, "value": item.value })
}
