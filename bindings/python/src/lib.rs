//! The Python package `gguf_kit`: one file per class, each a thin layer over the crates. The part in Python
//! (`python/gguf_kit`) has the documentation.

mod array;
mod codec;
mod command;
mod edit;
mod error;
mod header;
mod imatrix;
mod inspect;
mod json;
mod judge;
mod make;
mod metadata;
mod model;
mod part;
mod runner;
mod template;
mod tensor;
mod tokenizer;
mod value;
mod work;

#[pyo3::pymodule]
mod _native {
    #[pymodule_export]
    use crate::codec::{decode, encode};
    #[pymodule_export]
    use crate::command::command;
    #[pymodule_export]
    use crate::edit::edit;
    #[pymodule_export]
    use crate::header::{Header, pack_strings};
    #[pymodule_export]
    use crate::imatrix::Imatrix;
    #[pymodule_export]
    use crate::inspect::{check, diff, hash};
    #[pymodule_export]
    use crate::judge::{collect_imatrix, divergence, perplexity};
    #[pymodule_export]
    use crate::make::{convert, quantize};
    #[pymodule_export]
    use crate::metadata::Metadata;
    #[pymodule_export]
    use crate::model::{Model, open, tensor_types};
    #[pymodule_export]
    use crate::part::{merge, merge_parts, part_fingerprint};
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
