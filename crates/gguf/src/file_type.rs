//! Values of `general.file_type`.

use crate::tensor_type::TensorType;

/// Value of `general.file_type`.
#[derive(Debug)]
pub struct FileType {
    /// Value in files.
    pub id: u32,
    /// Name of the quantization type in llama.cpp's quantizer.
    pub name: &'static str,
    /// Tensor type of most weights.
    pub main: TensorType,
}

macro_rules! file_types {
    ($($id:literal $name:literal $main:ident;)*) => {
        /// All file types, including those removed from the format.
        pub static FILE_TYPES: &[FileType] = &[
            $(FileType { id: $id, name: $name, main: TensorType::$main },)*
        ];
    };
}

file_types! {
     0 "F32"       F32;
     1 "F16"       F16;
     2 "Q4_0"      Q4_0;
     3 "Q4_1"      Q4_1;
     4 "Q4_1, some F16" Q4_1;
     5 "Q4_2"      Q4_2;
     6 "Q4_3"      Q4_3;
     7 "Q8_0"      Q8_0;
     8 "Q5_0"      Q5_0;
     9 "Q5_1"      Q5_1;
    10 "Q2_K"      Q2_K;
    11 "Q3_K_S"    Q3_K;
    12 "Q3_K_M"    Q3_K;
    13 "Q3_K_L"    Q3_K;
    14 "Q4_K_S"    Q4_K;
    15 "Q4_K_M"    Q4_K;
    16 "Q5_K_S"    Q5_K;
    17 "Q5_K_M"    Q5_K;
    18 "Q6_K"      Q6_K;
    19 "IQ2_XXS"   IQ2_XXS;
    20 "IQ2_XS"    IQ2_XS;
    21 "Q2_K_S"    Q2_K;
    22 "IQ3_XS"    IQ3_S;
    23 "IQ3_XXS"   IQ3_XXS;
    24 "IQ1_S"     IQ1_S;
    25 "IQ4_NL"    IQ4_NL;
    26 "IQ3_S"     IQ3_S;
    27 "IQ3_M"     IQ3_S;
    28 "IQ2_S"     IQ2_XS;
    29 "IQ2_M"     IQ2_S;
    30 "IQ4_XS"    IQ4_XS;
    31 "IQ1_M"     IQ1_M;
    32 "BF16"      BF16;
    33 "Q4_0_4_4"  Q4_0_4_4;
    34 "Q4_0_4_8"  Q4_0_4_8;
    35 "Q4_0_8_8"  Q4_0_8_8;
    36 "TQ1_0"     TQ1_0;
    37 "TQ2_0"     TQ2_0;
    38 "MXFP4_MOE" MXFP4;
    39 "NVFP4"     NVFP4;
    40 "Q1_0"      Q1_0;
    41 "Q2_0"      Q2_0;
}

/// Returns the file type with this id.
///
/// The flag 1024, which marks a guessed file type, is ignored.
pub fn file_type(id: u64) -> Option<&'static FileType> {
    const GUESSED: u64 = 1024;
    FILE_TYPES.iter().find(|row| u64::from(row.id) == id & !GUESSED)
}

/// Returns the file type with this name, ignoring case.
pub const fn file_type_named(name: &str) -> Option<&'static FileType> {
    let mut i = 0;
    while i < FILE_TYPES.len() {
        if FILE_TYPES[i].name.eq_ignore_ascii_case(name) {
            return Some(&FILE_TYPES[i]);
        }
        i += 1;
    }
    None
}
