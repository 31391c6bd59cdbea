//! `features`

use gguf_graph::Features;

use super::Kernel;
use crate::run::{Inputs, Run};
use crate::sequence::Sequence;
use crate::value::Value;

impl Kernel for Features {
    fn compute(&self, run: &Run<'_>, _: &mut [Sequence], out: &mut Value) {
        if let Inputs::Features(features) = run.inputs {
            out.data.copy_from_slice(&features.data);
        }
    }
}
