//! Reports for people: self-contained HTML pages and SVG pictures.
//!
//! [`model_page`] shows the contents of a model, [`quality_page`] the cost and loss of its quantization types, and
//! [`graph_svg`] its computation graph. Text from models is escaped.

mod graph;
mod model;
mod quality;

pub use graph::graph_svg;
pub use model::model_page;
pub use quality::quality_page;
