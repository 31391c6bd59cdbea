//! Drawing of a graph in the DOT language of Graphviz.

use std::fmt::Write;

use crate::graph::Graph;
use crate::raw::Program;
use crate::tensor::Shape;

impl Graph {
    /// Returns the graph in the DOT language: a box for each operation with its shape and its weights.
    pub fn to_dot(&self) -> String {
        let mut text =
            String::from("digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n");
        if let Some((program, shapes)) = self.encoder() {
            self.write_program(&mut text, "e", program, shapes);
        }
        let (program, shapes) = self.main();
        self.write_program(&mut text, "m", program, shapes);
        text.push_str("}\n");
        text
    }

    fn write_program(&self, text: &mut String, prefix: &str, program: &Program, shapes: &[Shape]) {
        for (number, (op, shape)) in program.ops.iter().zip(shapes).enumerate() {
            let mut label = format!("{} {}", op.name(), shape);
            for id in op.weights() {
                let weight = self.raw().weights.get(id.0 as usize);
                label.push_str("\\n");
                // Quoted strings of DOT need escapes.
                label.extend(weight.iter().flat_map(|weight| weight.name.escape_default()));
            }
            // Writing to a String does not fail.
            let _ = writeln!(text, "  {prefix}{number} [label=\"{label}\"];");
            for value in op.inputs() {
                let _ = writeln!(text, "  {prefix}{} -> {prefix}{number};", value.0);
            }
        }
        for output in &program.outputs {
            let kind = format!("{:?}", output.kind);
            let _ = writeln!(text, "  {prefix}{kind} [label=\"{kind}\", shape=ellipse];");
            let _ = writeln!(text, "  {prefix}{} -> {prefix}{kind};", output.value.0);
        }
    }
}
