//! What a graph costs with the weights of a model.

use gguf_graph::{Cost, Graph, Load, Op, Shape};
use gguf_store::Model;
use layout::backends::svg::SVGWriter;
use layout::gv::{DotParser, GraphBuilder};

use super::bench::Machine;
use crate::Error;

/// An operation under a load.
#[derive(Clone, Debug)]
pub struct Row {
    /// Whether it is of the encoder.
    pub encoder: bool,
    /// Its number in its program.
    pub number: usize,
    /// Its name, as in the stored form.
    pub op: &'static str,
    /// The shape of its value.
    pub shape: Shape,
    /// The names of its weights.
    pub weights: Vec<String>,
    /// Bytes of weights that it reads.
    pub bytes: u64,
    /// Pairs of numbers that it multiplies and adds.
    pub multiply_adds: u64,
}

/// All operations of a graph under a load.
#[derive(Clone, Debug)]
pub struct Report {
    /// The operations, those of the encoder first.
    pub rows: Vec<Row>,
    /// Bytes of weights that are read in all.
    pub bytes: u64,
    /// Pairs of numbers that are multiplied and added in all.
    pub multiply_adds: u64,
    /// Numbers that caches keep of each token.
    pub cache_width: u64,
}

impl Report {
    /// How often a second the machine can read the weights, and do the products in F32: the less of
    /// both is what it allows.
    pub fn limits(&self, machine: Machine) -> (f64, f64) {
        let per_second = |can: f64, needs: u64| can / (needs as f64).max(1.0);
        (
            per_second(machine.bytes_per_second, self.bytes),
            per_second(machine.multiply_adds_per_second, self.multiply_adds),
        )
    }
}

/// What a graph costs.
pub fn report(model: &Model, graph: &Graph, load: Load) -> Report {
    let index = model.index();
    let bytes_of =
        |name: &str| index.get(name).and_then(|tensor| tensor.info.byte_len()).unwrap_or(0);
    let mut rows = Vec::new();
    let mut add = |encoder: bool, ops: &[Op], shapes: &[Shape], costs: Vec<Cost>| {
        for (number, ((op, shape), cost)) in ops.iter().zip(shapes).zip(costs).enumerate() {
            let mut row = Row {
                encoder,
                number,
                op: op.name(),
                shape: *shape,
                weights: Vec::new(),
                bytes: 0,
                multiply_adds: cost.multiply_adds,
            };
            for (id, share) in cost.weights {
                let Some(weight) = graph.raw().weights.get(id.0 as usize) else { continue };
                row.bytes += (bytes_of(&weight.name) as f64 * share) as u64;
                row.weights.push(weight.name.clone());
            }
            rows.push(row);
        }
    };
    if let Some((program, shapes)) = graph.encoder() {
        add(true, &program.ops, shapes, graph.encoder_costs(load));
    }
    let (program, shapes) = graph.main();
    add(false, &program.ops, shapes, graph.costs(load));
    let sum = |of: fn(&Row) -> u64| rows.iter().map(of).fold(0, u64::saturating_add);
    Report {
        bytes: sum(|row| row.bytes),
        multiply_adds: sum(|row| row.multiply_adds),
        cache_width: graph.cache_width(),
        rows,
    }
}

/// A picture of a graph.
///
/// # Errors
/// `graph-invalid` if names in it cannot be drawn.
pub fn to_svg(graph: &Graph) -> Result<String, Error> {
    let text = graph.to_dot();
    let parsed = DotParser::new(&text).process().map_err(|fault| {
        Error::from(gguf::Finding::error("graph-invalid", format!("cannot be drawn: {fault}")))
    })?;
    let mut builder = GraphBuilder::new();
    builder.visit_graph(&parsed);
    let mut picture = SVGWriter::new();
    builder.get().do_it(false, false, false, &mut picture);
    Ok(picture.finalize())
}
