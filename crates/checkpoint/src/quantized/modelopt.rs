//! NVIDIA ModelOpt: NVFP4, FP8, or both.

use super::fp8::BlockSize;
use super::method::Method;
use super::{Matrix, MatrixError, TensorSet, nvfp4};
use crate::raw::Raw;

pub(super) const METHOD: Method = Method {
    name: "ModelOpt",
    names: &["modelopt", "modelopt_fp4"],
    file: Some("hf_quant_config.json"),
    read: |_| Ok(Box::new(matrix)),
};

fn matrix(set: &TensorSet, main: &Raw) -> Result<Option<Matrix>, MatrixError> {
    match nvfp4::matrix(set, main)? {
        None => BlockSize::default().matrix(set, main),
        found => Ok(found),
    }
}
