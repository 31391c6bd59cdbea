//! Granite 4 and Bamba: state spaces in most layers, attention in some.

use crate::convert::Converter;
use crate::granitehybrid::convert::GraniteHybrid;

/// The same with experts.
pub(crate) struct GraniteMoeWithoutStates;

impl Converter for GraniteMoeWithoutStates {
    fn base(&self) -> &'static dyn Converter {
        &GraniteHybrid
    }

    fn architecture(&self) -> &'static str {
        "granitemoe"
    }
}
