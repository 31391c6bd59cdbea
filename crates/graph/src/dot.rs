//! A graph in the language of Graphviz.

use std::fmt::Write;

use crate::graph::{Graph, Rows, Shape};
use crate::op::Op;
use crate::raw::Program;

impl Graph {
    /// The graph in the language `dot`: a box for each operation with its shape and its weights.
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
                // What stands in quotes has to be escaped.
                label.extend(weight.iter().flat_map(|weight| weight.name.escape_default()));
            }
            // Writing to a text does not fail.
            let _ = writeln!(text, "  {prefix}{number} [label=\"{label}\"];");
            for value in op.values() {
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

impl std::fmt::Display for Shape {
    /// As `tokens x 256`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.rows {
            Rows::Tokens => f.write_str("tokens"),
            Rows::Outputs => f.write_str("outputs"),
            Rows::Sequences => f.write_str("sequences"),
            Rows::Frames { stride: 1 } => f.write_str("frames"),
            Rows::Frames { stride } => write!(f, "frames/{stride}"),
        }?;
        write!(f, " x {}", self.width)
    }
}

impl Op {
    /// Its name, as in the stored form.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Features { .. } => "features",
            Self::Embed { .. } => "embed",
            Self::Ngrams(_) => "ngrams",
            Self::Product { .. } => "product",
            Self::Mark(_) => "mark",
            Self::NumberedProduct(_) => "numbered_product",
            Self::HeadProduct { .. } => "head_product",
            Self::Norm { .. } => "norm",
            Self::Add { .. } => "add",
            Self::Multiply { .. } => "multiply",
            Self::AddWeight { .. } => "add_weight",
            Self::MultiplyWeight { .. } => "multiply_weight",
            Self::Mix { .. } => "mix",
            Self::Scale { .. } => "scale",
            Self::AddNumber { .. } => "add_number",
            Self::ScaleByPosition { .. } => "scale_by_position",
            Self::Clamp { .. } => "clamp",
            Self::SoftCap { .. } => "soft_cap",
            Self::Activate { .. } => "activate",
            Self::Softmax { .. } => "softmax",
            Self::Sinkhorn { .. } => "sinkhorn",
            Self::Combine { .. } => "combine",
            Self::Gate { .. } => "gate",
            Self::Slice { .. } => "slice",
            Self::Join { .. } => "join",
            Self::Sum { .. } => "sum",
            Self::Rotate { .. } => "rotate",
            Self::Attention(_) => "attention",
            Self::Choose(_) => "choose",
            Self::Compress(_) => "compress",
            Self::Store { .. } => "store",
            Self::Experts(_) => "experts",
            Self::CausalConvolution { .. } => "causal_convolution",
            Self::Convolution { .. } => "convolution",
            Self::Shift { .. } => "shift",
            Self::Scan(_) => "scan",
            Self::Wkv(_) => "wkv",
            Self::LinearAttention(_) => "linear_attention",
            Self::Select { .. } => "select",
            Self::Pool { .. } => "pool",
        }
    }
}
