//! Tensors: list, tiles of the heat map, rows, statistics.

use gguf_kit::values::{
    Entry, Matrix, Numbers, Place, Profile, Scales, Statistics, TILE, TileBudget, levels,
    statistics as statistics_of, tile as tile_of,
};
use gguf_store::ModelTensor;
use serde_json::{Value as Json, json};

use super::Request;
use super::blocks::layout_json;
use super::keys::MAX_CHARS;
use crate::models::OpenModel;
use crate::query::Query;
use crate::response::{ApiError, ApiResult, Response, truncated};

/// Maximum number of values per response.
const MAX_VALUES: u64 = 64 << 10;

/// Maximum number of tensors per response: far above real models, and a bound for malicious files.
pub const MAX_TENSORS: u64 = 64 << 10;

/// `GET tensors`.
pub fn tensors(request: &Request) -> ApiResult {
    let tensors = request.model.model()?.tensors();
    let page = request.query.page_with_limit(MAX_TENSORS, MAX_TENSORS)?;
    let (listed, total) = page.slice(tensors.iter().enumerate());
    let listed =
        listed.into_iter().map(|(n, tensor)| entry(&request.model, n, tensor)).collect::<Json>();
    Ok(Response::Json(json!({ "total": total, "offset": page.offset, "tensors": listed })))
}

/// Returns a tensor as an entry of the list.
fn entry(model: &OpenModel, n: usize, tensor: &ModelTensor) -> Json {
    let info = &tensor.info;
    let (layer, kind) = layer_and_kind(&info.name);
    json!({
        "n": n,
        "name": truncated(info.name.as_bytes(), MAX_CHARS),
        "name_bytes": info.name.len(),
        "type": info.tensor_type.name(),
        "shape": &info.shape[..],
        "parameters": info.shape.elements(),
        "bytes": info.byte_len(),
        "file": tensor.shard,
        "offset": tensor.offset,
        "missing_bytes": model.missing_bytes(tensor),
        "damage": model.tensor_damage(n),
        "block": layer,
        "kind": truncated(kind.as_bytes(), MAX_CHARS),
    })
}

/// Splits a tensor name `blk.N.kind` into the layer index and the rest.
fn layer_and_kind(name: &str) -> (Option<u64>, &str) {
    let at = if name.starts_with("blk.") { Some(4) } else { name.find(".blk.").map(|at| at + 5) };
    let parts = at.and_then(|at| {
        let (number, kind) = name.get(at..)?.split_once('.')?;
        Some((Some(number.parse().ok()?), kind))
    });
    parts.unwrap_or((None, name))
}

/// `GET tensor`.
pub fn tensor(request: &Request) -> ApiResult {
    let (n, tensor) = request.model.tensor(&request.query.selector()?)?;
    let mut json = entry(&request.model, n, tensor);
    let matrix = Matrix::of(tensor).ok();
    let block = tensor.info.tensor_type.block();
    let columns = tensor.info.shape.row_len();
    let rows = tensor.info.shape.elements().and_then(|all| all.checked_div(columns)).unwrap_or(0);
    json["rows"] = rows.into();
    json["columns"] = columns.into();
    json["decodable"] = matrix.is_some().into();
    json["levels"] = matrix.map(|matrix| levels(&matrix)).into();
    json["block_weights"] = block.map(|(weights, _)| weights).into();
    json["block_bytes"] = block.map(|(_, bytes)| bytes).into();
    json["blocks_per_row"] = matrix.map(|matrix| matrix.blocks_per_row()).into();
    json["blocks"] = matrix.map(|matrix| matrix.blocks_per_row().saturating_mul(rows)).into();
    let layout = matrix.and_then(|_| gguf_quant::block_layout(tensor.info.tensor_type));
    json["layout"] = layout.map(layout_json).into();
    Ok(Response::Json(json))
}

/// `GET tensor/tile`.
pub fn tile(request: &Request) -> ApiResult {
    let (_, tensor) = request.model.tensor(&request.query.selector()?)?;
    let (matrix, budget) = (Matrix::of(tensor)?, request.model.budget().tile);
    if request.model.files.is_remote() {
        prefetch(&matrix, request.query)?;
    }
    match request.query.text("of") {
        None => tile_response(&matrix, request.query, budget),
        Some(field) => tile_response(&Scales::of(matrix, field)?, request.query, budget),
    }
}

/// Fetches the rows of a small tile in one HTTP range request instead of one per row.
fn prefetch(matrix: &Matrix, query: &Query) -> Result<(), ApiError> {
    const MAX_BYTES: u64 = 4 << 20;
    let (level, y): (u32, u64) = (query.parsed_or("level", 0)?, query.parsed_or("y", 0)?);
    let rows = TILE.checked_shl(level).unwrap_or(u64::MAX);
    let first = y.saturating_mul(rows).min(matrix.rows());
    let count = rows.min(matrix.rows() - first);
    let (_, bytes) = matrix.block();
    let blocks = count.saturating_mul(matrix.blocks_per_row());
    if blocks.saturating_mul(bytes) <= MAX_BYTES {
        matrix.blocks(first, 0..blocks)?;
    }
    Ok(())
}

/// Returns the requested tile.
pub fn tile_response(numbers: &dyn Numbers, query: &Query, budget: TileBudget) -> ApiResult {
    let place = Place {
        level: query.parsed_or("level", 0)?,
        x: query.parsed_or("x", 0)?,
        y: query.parsed_or("y", 0)?,
    };
    let tile = tile_of(numbers, place, budget)?;
    let planes = 1 + usize::from(!tile.extreme.is_empty());
    let headers = vec![
        ("tile-width", tile.width.to_string()),
        ("tile-height", tile.height.to_string()),
        ("tile-planes", planes.to_string()),
        ("tile-exact", tile.exact.to_string()),
        ("tile-read", tile.read.to_string()),
    ];
    let bytes = Response::f32_bytes(tile.mean.into_iter().chain(tile.extreme));
    Ok(Response::Bytes("application/octet-stream", bytes, headers))
}

/// `GET tensor/rows`.
pub fn rows(request: &Request) -> ApiResult {
    let (_, tensor) = request.model.tensor(&request.query.selector()?)?;
    let (matrix, query) = (Matrix::of(tensor)?, request.query);
    let (start, count): (u64, u64) = (query.parsed_or("start", 0)?, query.parsed_or("count", 1)?);
    let column: u64 = query.parsed_or("column", 0)?;
    let room = matrix.columns().saturating_sub(column).min(MAX_VALUES / count.max(1));
    let columns: u64 = query.parsed_or("columns", room)?;
    let within =
        |start: u64, count: u64, len: u64| start.checked_add(count).is_some_and(|end| end <= len);
    if !within(start, count, matrix.rows()) || !within(column, columns, matrix.columns()) {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        return Err(ApiError::bad_request(format!(
            "the requested range exceeds the {rows} rows of {columns} values"
        )));
    }
    if count.checked_mul(columns).is_none_or(|all| all > MAX_VALUES) {
        return Err(ApiError::bad_request(format!("expected at most {MAX_VALUES} values")));
    }
    let mut data = Vec::new();
    for row in start..start + count {
        let mut numbers = Vec::new();
        matrix.read(row, column..column + columns, &mut numbers)?;
        data.push(numbers);
    }
    match query.text("format").unwrap_or("json") {
        "f32" => Ok(Response::bytes(Response::f32_bytes(data.concat()))),
        "json" => Ok(Response::Json(json!({
            "start": start, "count": count, "column": column, "columns": columns, "rows": data,
        }))),
        _ => Err(ApiError::bad_request("expected json or f32 as `format`")),
    }
}

/// `GET tensor/statistics`.
pub fn statistics(request: &Request) -> ApiResult {
    let (_, tensor) = request.model.tensor(&request.query.selector()?)?;
    let matrix = Matrix::of(tensor)?;
    let found = statistics_of(&matrix, budget(request)?, request.cancel)?;
    Ok(Response::Json(statistics_json(&found)))
}

/// Returns the maximum number of values to read.
pub fn budget(request: &Request) -> Result<u64, ApiError> {
    let exact = request.query.parsed_or("exact", false)?;
    Ok(if exact { u64::MAX } else { request.model.budget().statistics })
}

/// Returns statistics as JSON.
pub fn statistics_json(found: &Statistics) -> Json {
    let figures = &found.figures;
    let outliers = found.outliers.iter().map(|outlier| {
        json!({
            "row": outlier.row,
            "column": outlier.column,
            "value": outlier.value,
            "deviations": outlier.deviations,
        })
    });
    json!({
        "exact": found.exact,
        "read": figures.count,
        "count": found.count,
        "zeros": figures.zeros,
        "nan": figures.nan,
        "infinite": figures.infinite,
        "min": figures.min,
        "max": figures.max,
        "mean": figures.mean,
        "stddev": figures.deviation,
        "histogram": { "from": figures.min, "to": figures.max, "counts": figures.histogram },
        "rows": profile(&found.rows),
        "columns": profile(&found.columns),
        "outliers": outliers.collect::<Json>(),
    })
}

fn profile(profile: &Profile) -> Json {
    let values = |get: fn(&Entry) -> f64| {
        profile.entries.iter().map(|entry| entry.as_ref().map(get)).collect::<Vec<_>>()
    };
    json!({
        "per": profile.per,
        "min": values(|entry| entry.min.into()),
        "max": values(|entry| entry.max.into()),
        "mean": values(|entry| entry.mean),
        "stddev": values(|entry| entry.deviation),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layer_and_kind_of_tensor_names() {
        for (name, expected) in [
            ("blk.3.attn_q.weight", (Some(3), "attn_q.weight")),
            ("enc.blk.12.ffn.weight", (Some(12), "ffn.weight")),
            ("token_embd.weight", (None, "token_embd.weight")),
            ("blk.x.y", (None, "blk.x.y")),
            ("blk.", (None, "blk.")),
        ] {
            assert_eq!(layer_and_kind(name), expected);
        }
    }
}
