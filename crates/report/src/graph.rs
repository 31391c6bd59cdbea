//! Computation graphs as SVG.

use gguf::{Error, Finding};
use gguf_graph::Graph;
use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};

/// Draws a computation graph.
///
/// # Errors
/// `graph-invalid` if names in the graph cannot be drawn.
pub fn graph_svg(graph: &Graph) -> Result<String, Error> {
    let text = graph.to_dot();
    let parsed = DotParser::new(&text).process().map_err(|fault| {
        Error::from(Finding::error("graph-invalid", format!("cannot be drawn: {fault}")))
    })?;
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&parsed);
    let mut picture = SVGWriter::new();
    builder.get().do_it(false, false, false, &mut picture);
    Ok(picture.finalize())
}
