//! Reports for people: self-contained HTML pages, SVG pictures, and Markdown.
//!
//! [`model_page`] shows the contents of models, [`quality_page`] the cost and loss of its quantization types, and
//! [`graph_svg`] its computation graph. [`card_markdown`] writes the card of a repository, [`quality_markdown`] and
//! [`divergence_markdown`] tables. Text from models is escaped.

pub mod card;
mod figures;
mod graph;
mod markdown;
mod model;
mod quality;
mod tables;

pub use card::card_markdown;
pub use graph::graph_svg;
pub use model::{MemoryRow, ModelReport, model_page};
pub use quality::quality_page;
pub use tables::{divergence_markdown, file_card_markdown, quality_markdown};
