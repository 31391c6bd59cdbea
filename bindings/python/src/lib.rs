//! Native module of the Python package `gguf_kit`: one file per class or group of functions. `python/gguf_kit`
//! documents the API.

mod analysis;
mod array;
mod codec;
mod command;
mod convert;
mod edit;
mod error;
mod eval;
mod handle;
mod header;
mod imatrix;
mod json;
mod metadata;
mod model;
mod output;
mod part;
mod quantize;
mod recipe;
mod runner;
mod task;
mod template;
mod tensor;
mod tokenizer;
mod value;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::analysis::{check, diff, hash};
    #[pymodule_export]
    use crate::codec::{decode, encode};
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::convert::convert;
    #[pymodule_export]
    use crate::edit::edit;
    #[pymodule_export]
    use crate::eval::{collect_imatrix, divergence, merge_parts, perplexity};
    #[pymodule_export]
    use crate::header::{Header, pack_strings};
    #[pymodule_export]
    use crate::imatrix::Imatrix;
    #[pymodule_export]
    use crate::metadata::Metadata;
    #[pymodule_export]
    use crate::model::{Model, open, tensor_types};
    #[pymodule_export]
    use crate::part::{merge, part_fingerprint};
    #[pymodule_export]
    use crate::quantize::quantize;
    #[pymodule_export]
    use crate::runner::Runner;
    #[pymodule_export]
    use crate::template::apply_chat_template;
    #[pymodule_export]
    use crate::tensor::Tensor;
    #[pymodule_export]
    use crate::tokenizer::Tokenizer;
    use pyo3::prelude::*;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
