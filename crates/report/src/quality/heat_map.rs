//! Heat maps of weight errors: by role of the tensor for all types, by role and layer for one type.

use std::collections::BTreeSet;

use gguf_eval::quality::{QualityReport, TensorError, TypeQuality};
use svg::node::element::{Group, Rectangle, Title};

use super::plots::{picture, text};
use crate::figures::{rounded, significant};

/// Returns the layer of a tensor, if any, and its role: `blk.3.attn_q.weight` is `attn_q` of layer 3.
fn role(name: &str) -> (Option<u64>, &str) {
    let name = name.strip_suffix(".weight").unwrap_or(name);
    let parts = name.strip_prefix("blk.").and_then(|rest| rest.split_once('.'));
    match parts.and_then(|(block, role)| Some((block.parse().ok()?, role))) {
        Some((block, role)) => (Some(block), role),
        None => (None, name),
    }
}

/// Returns the root mean square of errors; `None` without tensors.
fn rms<'t>(tensors: impl Iterator<Item = &'t TensorError>) -> Option<f64> {
    let (count, sum) =
        tensors.fold((0, 0.0), |(count, sum), t| (count + 1, sum + t.error * t.error));
    (count > 0).then(|| (sum / f64::from(count)).sqrt())
}

/// Returns the color of a cell, from 0 to 100, for errors from 0.4 % to 100 % on a log scale.
fn heat(error: f64) -> f64 {
    ((error.max(1e-9).log10() + 2.4) / 2.4 * 100.0).clamp(0.0, 100.0).round()
}

/// Returns the roles in the order of the file.
fn roles<'t>(tensors: impl Iterator<Item = &'t TensorError>) -> Vec<&'t str> {
    let mut all = Vec::new();
    for (_, role) in tensors.map(|tensor| role(&tensor.name)) {
        if !all.contains(&role) {
            all.push(role);
        }
    }
    all
}

/// Layout of the cells.
struct Cells {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Cells {
    fn cell(&self, row: usize, column: usize, error: f64, tooltip: String, label: bool) -> Group {
        let (x, y) = (self.left + column as f64 * self.width, self.top + row as f64 * self.height);
        let hot = heat(error);
        let rectangle = Rectangle::new()
            .set("x", rounded(x + 1.0))
            .set("y", rounded(y + 1.0))
            .set("width", rounded(self.width - 2.0))
            .set("height", rounded(self.height - 2.0))
            .set("rx", 2)
            .set("class", "cell")
            .set("style", format!("--hot:{hot}"));
        let group = Group::new().add(Title::new(tooltip)).add(rectangle);
        if !label {
            return group;
        }
        let class = if hot > 55.0 { "figure on-hot" } else { "figure" };
        let percent = significant(100.0 * error, if error < 0.0995 { 1 } else { 2 });
        group.add(text(x + self.width / 2.0, y + self.height / 2.0 + 4.0, class, percent))
    }

    /// Returns the slanted name of a column.
    fn heading(&self, column: usize, name: &str) -> svg::node::element::Text {
        let x = self.left + (column as f64 + 0.5) * self.width;
        let y = self.top - 8.0;
        let transform = format!("rotate(-40 {} {})", rounded(x), rounded(y));
        text(x, y, "head", name).set("transform", transform)
    }
}

/// Returns the height of the slanted names.
fn heading_height(roles: &[&str]) -> f64 {
    16.0 + 4.6 * roles.iter().map(|role| role.len()).max().unwrap_or(0) as f64
}

/// Draws errors by role: one row per type, the largest first.
pub(super) fn by_role(report: &QualityReport, width: f64, id: &str) -> Option<String> {
    let entries: Vec<&TypeQuality> =
        report.by_size().into_iter().filter(|entry| !entry.tensors.is_empty()).collect();
    let roles = roles(entries.iter().flat_map(|entry| &entry.tensors));
    if roles.is_empty() {
        return None;
    }
    let left = 76.0;
    // The slanted name of the last column extends to the right.
    let overhang = 5.2 * roles.last().map_or(0, |role| role.len()) as f64;
    let cells = Cells {
        left,
        top: heading_height(&roles),
        width: ((width - left - overhang) / roles.len() as f64).min(94.0),
        height: 24.0,
    };
    let height = cells.top + cells.height * entries.len() as f64 + 4.0;
    let title = "Weight error by type and role of the tensor";
    let mut picture = picture(width, height, id, title);
    for (column, role) in roles.iter().enumerate() {
        picture = picture.add(cells.heading(column, role));
    }
    for (row, entry) in entries.iter().enumerate() {
        let y = cells.top + (row as f64 + 0.5) * cells.height + 4.0;
        let class = if entry.dominated_by.is_some() { "label end dominated" } else { "label end" };
        picture = picture.add(text(left - 8.0, y, class, entry.name.as_str()));
        for (column, name) in roles.iter().enumerate() {
            let mut types = BTreeSet::new();
            let with_role = entry.tensors.iter().filter(|tensor| role(&tensor.name).1 == *name);
            let error = rms(with_role.inspect(|tensor| {
                types.insert(tensor.tensor_type.as_str());
            }));
            let Some(error) = error else { continue };
            let types = types.into_iter().collect::<Vec<_>>().join(", ");
            let percent = significant(100.0 * error, 2);
            let tooltip = format!("{}, {name} as {types}: {percent}%", entry.name);
            picture = picture.add(cells.cell(row, column, error, tooltip, cells.width >= 28.0));
        }
    }
    Some(picture.to_string())
}

/// Draws errors of a type by role and layer; `None` without layers.
pub(super) fn by_block(entry: &TypeQuality, id: &str) -> Option<String> {
    let in_blocks = || entry.tensors.iter().filter(|tensor| role(&tensor.name).0.is_some());
    let roles = roles(in_blocks());
    let blocks: BTreeSet<u64> = in_blocks().filter_map(|tensor| role(&tensor.name).0).collect();
    if roles.is_empty() {
        return None;
    }
    let cells = Cells { left: 34.0, top: heading_height(&roles), width: 36.0, height: 20.0 };
    let overhang = 5.2 * roles.last().map_or(0, |role| role.len()) as f64;
    let width = cells.left + cells.width * roles.len() as f64 + overhang;
    let height = cells.top + cells.height * blocks.len() as f64 + 4.0;
    let title = format!("Weight error of {} by layer and role", entry.name);
    let mut picture =
        picture(width, height, id, &title).set("style", format!("max-width:{}px", rounded(width)));
    for (column, role) in roles.iter().enumerate() {
        picture = picture.add(cells.heading(column, role));
    }
    for (row, block) in blocks.iter().enumerate() {
        let y = cells.top + (row as f64 + 0.5) * cells.height + 4.0;
        picture = picture.add(text(cells.left - 7.0, y, "tick end", block.to_string()));
    }
    for tensor in in_blocks() {
        let (block, name) = role(&tensor.name);
        let row = blocks.iter().position(|other| Some(*other) == block).unwrap_or(0);
        let column = roles.iter().position(|other| *other == name).unwrap_or(0);
        let percent = significant(100.0 * tensor.error, 2);
        let tooltip = format!("{} as {}: {percent}%", tensor.name, tensor.tensor_type);
        picture = picture.add(cells.cell(row, column, tensor.error, tooltip, true));
    }
    Some(picture.to_string())
}
