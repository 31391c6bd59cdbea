//! ModelOpt, the tool of NVIDIA: NVFP4, FP8, or a mixture.

use super::method::Method;
use super::scaled::Blocks;
use super::{Matrix, Set, Wrong, nvfp4};
use crate::raw::Raw;

pub(super) const METHOD: Method = Method {
    name: "ModelOpt",
    words: &["modelopt", "modelopt_fp4"],
    file: Some("hf_quant_config.json"),
    read: |_| Ok(Box::new(matrix)),
};

fn matrix(set: &Set, main: &Raw) -> Result<Option<Matrix>, Wrong> {
    match nvfp4::matrix(set, main)? {
        None => Blocks::default().matrix(set, main),
        found => Ok(found),
    }
}
