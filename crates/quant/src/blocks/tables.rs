//! Tables and scales that integers are looked up in.

pub(crate) use super::e2m1::DOUBLED as E2M1_DOUBLED;
pub(crate) use super::iq4::VALUES as IQ4;
pub(crate) use super::mxfp4::half_scale as mxfp4_half_scale;
pub(crate) use super::nvfp4::half_scale as nvfp4_half_scale;
