//! Weights rounded by what that does to the outputs of a model.
//!
//! A quantizer that looks at weights alone brings each of them near to what it was. What counts is how near
//! the *products* of a matrix come to what they were, for the inputs that the model really has. Those are
//! collected while the model reads a text ([`Moments`]): sums of `x xT` over all tokens, and how far the inputs
//! of the quantized model are from those of the original. Then each matrix is encoded column by column, and what one
//! column is wrong by is made up for by those that follow ([`Encoder`]).
//!
//! [`calibrate`] does so for a whole model, in the order in which it computes: each matrix makes up for what the
//! ones before it spoiled.
//!
//! The ideas are those of Frantar et al., "GPTQ" (2022), of Li et al., "GPTAQ" (2025), and of Chee et al.,
//! "QuIP" (2023), for the types of ggml.

mod calibrate;
mod collector;
mod encode;
mod factor;
mod job;
mod kept;
mod lanes;
mod moments;
mod points;
mod rounding;
mod scales;
mod stage;
mod tensor;
mod walk;

pub use calibrate::{Calibrated, Each, EachSeen, Made, Options, calibrate, collect, is_calibrated};
pub use collector::Collector;
pub use encode::{Encoder, Target};
pub use factor::Factor;
pub use job::{
    Calibration, CalibrationText, Calibrator, EncodedTensors, KEY_PREFIX, Persistence,
    save_hessians,
};
pub use moments::Moments;
pub use stage::matrices;
pub use tensor::Encoders;

/// What stands in files for the way in which their weights were rounded: another one when that changes.
pub const METHOD: &str = "moments-2";

use self::{
    Calibrated as CalibratedTensor, Collector as HessianCollector, Each as OnTensor,
    EachSeen as OnHessians, Made as FindEncoded, Moments as Hessian, Options as CalibrateOptions,
    collect as collect_hessians, matrices as matmul_weights,
};
