//! Layouts of types without blocks: one number per weight.

use crate::layout::Place::Every;
use crate::layout::{BlockLayout, Field, FieldKind};

macro_rules! layouts {
    ($($name:ident $kind:ident $bits:literal,)*) => {$(
        pub(super) const $name: BlockLayout = BlockLayout {
            formula: "x = value",
            fields: &[Field::one(
                "value",
                "the weight",
                FieldKind::$kind,
                &[Every { first: 0, len: $bits, step: 0 }],
            )],
            weight: |of| of.value(0),
        };
    )*};
}
layouts! {
    F32  F32    32,
    F16  F16    16,
    BF16 BF16   16,
    F64  F64    64,
    I8   Signed  8,
    I16  Signed 16,
    I32  Signed 32,
    I64  Signed 64,
}
