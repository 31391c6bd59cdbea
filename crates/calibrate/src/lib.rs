//! GPTQ for the types of ggml: rounds weights to minimize the error of a model's outputs.
//!
//! Round-to-nearest minimizes the error of the weights. GPTQ minimizes the error of the *outputs*
//! of each matrix for the inputs of a calibration text. The [`Hessian`] of a matrix is the sum of
//! `x xᵀ` over all tokens, with the drift of the quantized model's inputs from those of the
//! original. Each matrix is encoded column by column, and the rounding error of a column is
//! propagated to the remaining columns ([`Encoder`]).
//!
//! [`calibrate()`] encodes a whole model in the order of the graph: each matrix also compensates
//! the errors of earlier matrices.
//!
//! Based on Frantar et al., "GPTQ" (2022), Li et al., "GPTAQ" (2025), and Chee et al., "QuIP"
//! (2023).

mod activation_file;
mod bundled_text;
mod calibrate;
mod cholesky;
mod codebook;
mod correction;
mod encoder;
mod gptq;
mod hessian;
mod hessian_collector;
mod job;
mod lanes;
mod levels;
mod objective;
mod paired_run;
mod products;
mod scales;
mod self_text;
mod stage;
mod tensor_encoder;
mod tile;
mod token_weights;
mod variant;

pub use bundled_text::{PreparedText, bundled_text};
pub use calibrate::{
    CalibrateOptions, FindEncoded, OnHessians, OnTensor, calibrate, collect_hessians, is_calibrated,
};
pub use cholesky::CholeskyFactor;
pub use correction::Correction;
pub use encoder::Encoder;
pub use hessian::Hessian;
pub use hessian_collector::HessianCollector;
pub use job::{
    Calibration, CalibrationText, Calibrator, EncodedTensors, KEY_PREFIX, Persistence, TextSource,
    save_hessians,
};
pub use objective::Objective;
pub use self_text::{SelfTextOptions, Turn, self_text};
pub use stage::matmul_weights;
pub use tensor_encoder::{CalibratedTensor, Damping, Encoders};
pub use variant::variant;

/// Name of the method in written files; changes whenever the encoded weights change.
pub const METHOD: &str = "moments-6";
