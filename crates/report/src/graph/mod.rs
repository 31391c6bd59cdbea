//! Computation graphs as SVG: a box per operation, in the order of execution, and a line from each value to its readers.
//!
//! Consecutive layers that are equal are drawn once. Time and memory are linear in the number of operations.

mod fold;
mod lanes;

use gguf_graph::{Graph, Op, Program, Shape};
use svg::node::element::{Group, Path, Rectangle, Text, path::Data};
use svg::{Document, Node};

use self::fold::rows;
use self::lanes::Lanes;

/// Maximum number of boxes of a program; later operations are only counted.
const MAX_ROWS: usize = 5000;
/// Maximum number of characters of a label.
const MAX_LABEL: usize = 120;
/// Distance of the lines of boxes.
const LINE: usize = 28;
/// Height of a box.
const BOX: usize = 20;
/// Width of a character.
const CHARACTER: usize = 7;
/// Left edge of the boxes; lines to later boxes run left of it.
const LEFT: usize = 20 + lanes::MAX_LANES * lanes::WIDTH;

/// Draws a computation graph.
pub fn graph_svg(graph: &Graph) -> String {
    let mut picture = Picture { height: LINE / 2, width: 0, group: Group::new() };
    if let Some((program, shapes)) = graph.encoder() {
        picture.add_program("encoder", graph, program, shapes);
    }
    let (program, shapes) = graph.main();
    picture.add_program("main program", graph, program, shapes);
    let (width, height) = (picture.width + 20, picture.height + LINE / 2);
    let document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(Rectangle::new().set("width", width).set("height", height).set("fill", "white"));
    document.add(picture.group).to_string()
}

/// A picture that grows downwards.
struct Picture {
    height: usize,
    width: usize,
    group: Group,
}

impl Picture {
    fn add_program(&mut self, name: &str, graph: &Graph, program: &Program, shapes: &[Shape]) {
        self.add_text(LEFT, name, "bold");
        let all = rows(graph, program, shapes);
        let drawn = &all[..all.len().min(MAX_ROWS)];
        // Line of each operation; operations of repeated layers are on the line of the first of them.
        let top = self.height;
        let line_of = |place: usize| top + place * LINE + BOX / 2;
        let mut lanes = Lanes::default();
        for (place, row) in drawn.iter().enumerate() {
            for source in row.inputs.iter().filter(|source| **source < place) {
                let x =
                    if source + 1 == place { LEFT + 12 } else { lanes.take(*source, place, LEFT) };
                self.add_line(x, line_of(*source), line_of(place));
            }
        }
        for row in drawn {
            let fill = if row.repeated.is_some() { "#eef4ff" } else { "#f6f6f6" };
            let label = label(graph, &program.ops[row.op], shapes[row.op]);
            let repeated = row.repeated.as_ref().map(|layers| {
                format!(
                    "  \u{d7} {}: blk.{} to blk.{}",
                    layers.end - layers.start,
                    layers.start,
                    layers.end - 1
                )
            });
            self.add_box(&(label + repeated.as_deref().unwrap_or_default()), fill);
        }
        if all.len() > drawn.len() {
            let more = format!("{} further operations are not drawn", all.len() - drawn.len());
            self.add_text(LEFT, &more, "normal");
        }
        for output in &program.outputs {
            let text = format!("{:?}: value {}", output.kind, output.value.0);
            self.add_box(&text, "#e8f6e8");
        }
        self.height += LINE / 2;
    }

    fn add_line(&mut self, x: usize, from: usize, to: usize) {
        let (from, to) = (from as f64, to as f64);
        let data = match x > LEFT {
            true => Data::new().move_to((x, from)).line_to((x, to)),
            false => Data::new()
                .move_to((LEFT, from))
                .line_to((x, from + 4.0))
                .line_to((x, to - 4.0))
                .line_to((LEFT, to)),
        };
        let line = Path::new().set("d", data).set("fill", "none").set("stroke", "#888888");
        self.push(line);
    }

    fn add_box(&mut self, label: &str, fill: &str) {
        let width = CHARACTER * label.chars().count() + 12;
        let rectangle = Rectangle::new()
            .set("x", LEFT)
            .set("y", self.height)
            .set("width", width)
            .set("height", BOX)
            .set("rx", 3)
            .set("fill", fill)
            .set("stroke", "#888888");
        self.push(rectangle);
        self.add_text(LEFT + 6, label, "normal");
    }

    /// Adds a line of text.
    fn add_text(&mut self, x: usize, text: &str, weight: &str) {
        let width = CHARACTER * text.chars().count() + 12;
        self.width = self.width.max(x + width);
        let node = Text::new(text).set("x", x).set("y", self.height + 14);
        self.push(node.set("font-weight", weight));
        self.height += LINE;
    }

    fn push(&mut self, node: impl Node) {
        self.group.append(node);
    }
}

/// Returns the name of an operation, its shape and its weights.
fn label(graph: &Graph, op: &Op, shape: Shape) -> String {
    let weights = op.weights();
    let names = weights.iter().filter_map(|id| graph.raw().weights.get(id.0 as usize));
    // Control characters are not allowed in XML.
    let names = names.flat_map(|weight| " ".chars().chain(weight.name.escape_debug()));
    let mut label: String = format!("{} {shape}", op.name()).chars().chain(names).collect();
    if let Some((end, _)) = label.char_indices().nth(MAX_LABEL) {
        label.truncate(end);
        label.push('\u{2026}');
    }
    label
}

#[cfg(test)]
mod tests {
    use gguf_graph::Limits;
    use serde_json::{Value as Json, json};

    use super::*;

    /// Returns a graph of layers: a matmul, and a sum with the first value.
    pub(super) fn layers(count: usize) -> Graph {
        let weight =
            |layer: usize| json!({"name": format!("blk.{layer}.x.weight"), "shape": [4, 4]});
        let mut weights = vec![json!({"name": "table", "shape": [4, 9]})];
        weights.extend((0..count).map(weight));
        let mut ops = vec![json!({"op": "embedding", "table": 0, "index": "token"})];
        for layer in 0..count {
            ops.push(json!({"op": "matmul", "x": 2 * layer, "weight": layer + 1}));
            ops.push(json!({"op": "add", "a": 2 * layer + 1, "b": 0}));
        }
        graph(weights, ops)
    }

    pub(super) fn graph(weights: Vec<Json>, ops: Vec<Json>) -> Graph {
        let outputs = json!([{"kind": "hidden", "value": ops.len() - 1}]);
        let raw = json!({"architecture": "x", "weights": weights, "states": [],
            "main": {"ops": ops, "outputs": outputs}});
        Graph::new(serde_json::from_value(raw).unwrap(), Limits::default()).unwrap()
    }

    #[test]
    fn equal_layers_are_drawn_once() {
        let picture = graph_svg(&layers(12));
        assert_eq!(picture.matches("matmul").count(), 1, "{picture}");
        assert!(picture.contains("\u{d7} 12: blk.0 to blk.11"), "{picture}");
        assert!(graph_svg(&layers(1)).contains("blk.0.x.weight"));
    }

    #[test]
    fn a_huge_graph_is_drawn_in_part() {
        let weights = vec![json!({"name": "<table>\u{1}", "shape": [1, 9]})];
        let mut ops = vec![json!({"op": "embedding", "table": 0, "index": "token"})];
        ops.extend((0..40_000).map(|n| json!({"op": "scale", "x": n / 2, "factor": 2.0})));
        let picture = graph_svg(&graph(weights, ops));
        assert!(picture.contains("35001 further operations are not drawn"));
        assert!(picture.contains("&lt;table&gt;\\u{1}"), "{}", &picture[..4000]);
        assert!(picture.len() < 5_000_000, "{}", picture.len());
    }
}
