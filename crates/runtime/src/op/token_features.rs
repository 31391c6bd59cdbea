//! `token_features`

use gguf_graph::TokenFeatures;

use super::Kernel;
use crate::run::{Inputs, Run};
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for TokenFeatures {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        if let Inputs::Tokens { features, .. } = run.inputs {
            out.data.copy_from_slice(features);
        }
    }
}
