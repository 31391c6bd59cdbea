//! Architecture `dflash`.

#[cfg(feature = "convert")]
pub(crate) mod convert;
#[cfg(feature = "convert")]
pub(crate) mod deepseek4;
#[cfg(feature = "convert")]
pub(crate) mod gemma4_draft;
#[cfg(feature = "convert")]
pub(crate) mod muse_glimmer;
pub(crate) mod schema;
