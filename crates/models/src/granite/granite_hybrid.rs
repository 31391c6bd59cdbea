//! Granite 4 and Bamba: state spaces in most layers, attention in some.

use crate::convert::Converter;
use crate::granitehybrid::convert::GraniteHybrid;

/// The same without a state space, which is another architecture.
pub(crate) struct GraniteWithoutStates;

impl Converter for GraniteWithoutStates {
    fn base(&self) -> &'static dyn Converter {
        &GraniteHybrid
    }

    fn architecture(&self) -> &'static str {
        "granite"
    }
}
