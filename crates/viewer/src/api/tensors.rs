//! Tensors: which there are, and their numbers.

use gguf_kit::values::{
    Entry, Matrix, Numbers, Place, Profile, Scales, Statistics, TILE, levels,
    statistics as statistics_of, tile as tile_of,
};
use gguf_store::ModelTensor;
use serde_json::{Value as Json, json};

use super::Question;
use super::blocks::layout_json;
use super::keys::SHOWN;
use crate::answer::{Answer, Answered, Failure, cut};
use crate::ask::Ask;

/// Numbers of one answer at most.
const MOST: u64 = 64 << 10;

/// Tensors that are listed at a time: many times what models have, and less than what a file may say.
pub const LISTED: u64 = 64 << 10;

/// `GET tensors`.
pub fn tensors(question: &Question) -> Answered {
    let tensors = question.model.model()?.tensors();
    let page = question.ask.page_of(LISTED, LISTED)?;
    let (listed, total) = page.of(tensors.iter().enumerate());
    let listed = listed.into_iter().map(|(n, tensor)| entry(n, tensor)).collect::<Json>();
    Ok(Answer::Json(json!({ "total": total, "offset": page.offset, "tensors": listed })))
}

/// An entry of the list.
fn entry(n: usize, tensor: &ModelTensor) -> Json {
    let info = &tensor.info;
    let (block, kind) = block_and_kind(&info.name);
    json!({
        "n": n,
        "name": cut(info.name.as_bytes(), SHOWN),
        "name_bytes": info.name.len(),
        "type": info.tensor_type.name(),
        "shape": &info.shape[..],
        "parameters": info.shape.elements(),
        "bytes": info.byte_len(),
        "file": tensor.shard,
        "offset": tensor.offset,
        "block": block,
        "kind": cut(kind.as_bytes(), SHOWN),
    })
}

/// The number of the block that a tensor is of, and its name there.
fn block_and_kind(name: &str) -> (Option<u64>, &str) {
    let at = if name.starts_with("blk.") { Some(4) } else { name.find(".blk.").map(|at| at + 5) };
    let of_block = at.and_then(|at| {
        let (number, kind) = name.get(at..)?.split_once('.')?;
        Some((Some(number.parse().ok()?), kind))
    });
    of_block.unwrap_or((None, name))
}

/// `GET tensor`.
pub fn tensor(question: &Question) -> Answered {
    let (n, tensor) = question.model.tensor(&question.ask.named()?)?;
    let mut json = entry(n, tensor);
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
    let layout = matrix.and_then(|_| gguf_quant::layout(tensor.info.tensor_type));
    json["layout"] = layout.map(layout_json).into();
    Ok(Answer::Json(json))
}

/// `GET tensor/tile`.
pub fn tile(question: &Question) -> Answered {
    let (_, tensor) = question.model.tensor(&question.ask.named()?)?;
    let (matrix, budget) = (Matrix::of(tensor)?, question.model.budget().tile);
    if question.model.files.is_far() {
        fetch_ahead(&matrix, question.ask)?;
    }
    match question.ask.text("of") {
        None => tile_of_numbers(&matrix, question.ask, budget),
        Some(field) => tile_of_numbers(&Scales::of(matrix, field)?, question.ask, budget),
    }
}

/// Fetches the rows of a tile in one request, where that costs little: one by one they would be many.
fn fetch_ahead(matrix: &Matrix, ask: &Ask) -> Result<(), Failure> {
    const MOST: u64 = 4 << 20;
    let (level, y): (u32, u64) = (ask.or("level", 0)?, ask.or("y", 0)?);
    let rows = TILE.checked_shl(level).unwrap_or(u64::MAX);
    let first = y.saturating_mul(rows).min(matrix.rows());
    let count = rows.min(matrix.rows() - first);
    let (_, bytes) = matrix.block();
    let blocks = count.saturating_mul(matrix.blocks_per_row());
    if blocks.saturating_mul(bytes) <= MOST {
        matrix.blocks(first, 0..blocks)?;
    }
    Ok(())
}

/// The tile of any numbers that a request asks for.
pub fn tile_of_numbers(numbers: &dyn Numbers, ask: &Ask, budget: u64) -> Answered {
    let place = Place { level: ask.or("level", 0)?, x: ask.or("x", 0)?, y: ask.or("y", 0)? };
    let tile = tile_of(numbers, place, budget)?;
    let planes = 1 + usize::from(!tile.extreme.is_empty());
    let headers = vec![
        ("tile-width", tile.width.to_string()),
        ("tile-height", tile.height.to_string()),
        ("tile-planes", planes.to_string()),
        ("tile-exact", tile.exact.to_string()),
        ("tile-read", tile.read.to_string()),
    ];
    let bytes = Answer::floats(tile.mean.into_iter().chain(tile.extreme));
    Ok(Answer::Bytes("application/octet-stream", bytes, headers))
}

/// `GET tensor/rows`.
pub fn rows(question: &Question) -> Answered {
    let (_, tensor) = question.model.tensor(&question.ask.named()?)?;
    let (matrix, ask) = (Matrix::of(tensor)?, question.ask);
    let (start, count): (u64, u64) = (ask.or("start", 0)?, ask.or("count", 1)?);
    let column: u64 = ask.or("column", 0)?;
    let room = matrix.columns().saturating_sub(column).min(MOST / count.max(1));
    let columns: u64 = ask.or("columns", room)?;
    let within =
        |start: u64, count: u64, len: u64| start.checked_add(count).is_some_and(|end| end <= len);
    if !within(start, count, matrix.rows()) || !within(column, columns, matrix.columns()) {
        let shape = format!("{} rows of {}", matrix.rows(), matrix.columns());
        return Err(Failure::request(format!("there are {shape}, not all that was asked for")));
    }
    if count.checked_mul(columns).is_none_or(|all| all > MOST) {
        return Err(Failure::request(format!("at most {MOST} values at a time")));
    }
    let mut data = Vec::new();
    for row in start..start + count {
        let mut numbers = Vec::new();
        matrix.read(row, column..column + columns, &mut numbers)?;
        data.push(numbers);
    }
    match ask.text("format").unwrap_or("json") {
        "f32" => Ok(Answer::bytes(Answer::floats(data.concat()))),
        "json" => Ok(Answer::Json(json!({
            "start": start, "count": count, "column": column, "columns": columns, "rows": data,
        }))),
        _ => Err(Failure::request("`format` is json or f32")),
    }
}

/// `GET tensor/statistics`.
pub fn statistics(question: &Question) -> Answered {
    let (_, tensor) = question.model.tensor(&question.ask.named()?)?;
    let matrix = Matrix::of(tensor)?;
    let found = statistics_of(&matrix, budget(question)?, question.waiting)?;
    Ok(Answer::Json(statistics_json(&found)))
}

/// How many numbers may be read.
pub fn budget(question: &Question) -> Result<u64, Failure> {
    let exact = question.ask.or("exact", false)?;
    Ok(if exact { u64::MAX } else { question.model.budget().statistics })
}

/// Statistics of any numbers.
pub fn statistics_json(found: &Statistics) -> Json {
    let figures = &found.figures;
    let outliers = found.outliers.iter().map(|one| {
        json!({ "row": one.row, "column": one.column, "value": one.value, "deviations": one.deviations })
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
        "deviation": figures.deviation,
        "histogram": { "from": figures.min, "to": figures.max, "counts": figures.histogram },
        "rows": profile(&found.rows),
        "columns": profile(&found.columns),
        "outliers": outliers.collect::<Json>(),
    })
}

fn profile(profile: &Profile) -> Json {
    let of = |get: fn(&Entry) -> f64| {
        profile.entries.iter().map(|entry| entry.as_ref().map(get)).collect::<Vec<_>>()
    };
    json!({
        "per": profile.per,
        "min": of(|entry| entry.min.into()),
        "max": of(|entry| entry.max.into()),
        "mean": of(|entry| entry.mean),
        "deviation": of(|entry| entry.deviation),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_found_in_names() {
        for (name, expected) in [
            ("blk.3.attn_q.weight", (Some(3), "attn_q.weight")),
            ("enc.blk.12.ffn.weight", (Some(12), "ffn.weight")),
            ("token_embd.weight", (None, "token_embd.weight")),
            ("blk.x.y", (None, "blk.x.y")),
            ("blk.", (None, "blk.")),
        ] {
            assert_eq!(block_and_kind(name), expected);
        }
    }
}
