//! Default values of fields in the stored form.

pub(crate) const fn one() -> u32 {
    1
}

pub(crate) fn is_one(number: &u32) -> bool {
    *number == 1
}

pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

pub(crate) const fn one_f32() -> f32 {
    1.0
}

pub(crate) fn is_one_f32(number: &f32) -> bool {
    *number == 1.0
}

/// Whether a value equals its default.
pub(crate) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
