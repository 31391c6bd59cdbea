//! The magic and version: the container format of a file.
//!
//! ```text
//! magic u32 | version u32, not in GGML | hyper-parameters | vocabulary | tensors
//!
//! 0x67676d6c  `lmgg`  GGML            no scores
//! 0x67676d66  `fmgg`  GGMF v1         scores
//! 0x67676a74  `tjgg`  GGJT v1, 2, 3   scores, data aligned to 32
//! 0x67676363  `ccgg`  GGCC v10        scores, merges, data aligned to 32
//! ```

use std::fmt;
use std::path::Path;

use gguf::Error;
use gguf_store::{LocalFile, Source};

use super::blocks::QuantizationVersion;
use super::cursor::{Cursor, ReadError};

/// A legacy container format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// Has no version.
    Ggml,
    /// Version 1.
    Ggmf,
    /// Has this version.
    Ggjt(u32),
    /// Version 10, written by `ggllm.cpp`.
    Ggcc,
}

const GGML: u32 = 0x6767_6d6c;
const GGMF: u32 = 0x6767_6d66;
const GGJT: u32 = 0x6767_6a74;
const GGCC: u32 = 0x6767_6363;
/// LoRA adapter, not a model.
const GGLA: u32 = 0x6767_6c61;

/// Whether `path` is a file with the magic of a legacy format.
///
/// # Errors
/// If it cannot be read.
pub fn is_legacy(path: &Path) -> Result<bool, Error> {
    if !path.is_file() {
        return Ok(false);
    }
    let file = LocalFile::open(path)?;
    let mut magic = [0; 4];
    if file.byte_len() < 4 {
        return Ok(false);
    }
    file.read_at(&mut magic, 0)?;
    Ok([GGML, GGMF, GGJT, GGCC, GGLA].contains(&u32::from_le_bytes(magic)))
}

impl Container {
    /// Reads the magic and the version.
    pub fn read(cursor: &mut Cursor) -> Result<Self, ReadError> {
        let magic = cursor.u32("the magic")?;
        if magic == GGML {
            return Ok(Self::Ggml);
        }
        let at = cursor.at();
        let version = |cursor: &mut Cursor| cursor.u32("the version");
        match magic {
            GGMF => match version(cursor)? {
                1 => Ok(Self::Ggmf),
                other => {
                    Cursor::malformed(at, format!("unsupported GGMF version {other}, expected 1"))
                }
            },
            GGJT => match version(cursor)? {
                version @ 1..=3 => Ok(Self::Ggjt(version)),
                other => Cursor::malformed(
                    at,
                    format!("unsupported GGJT version {other}, expected 1 to 3"),
                ),
            },
            GGCC => match version(cursor)? {
                10 => Ok(Self::Ggcc),
                other => {
                    Cursor::malformed(at, format!("unsupported GGCC version {other}, expected 10"))
                }
            },
            GGLA => Cursor::malformed(0, "legacy LoRA adapter (GGLA), not a model"),
            other => Cursor::malformed(0, format!("unknown magic {other:#010x}")),
        }
    }

    /// Whether each token has a score.
    pub fn has_scores(self) -> bool {
        self != Self::Ggml
    }

    /// Rounds `offset` up to the alignment of tensor data.
    pub fn align(self, offset: u64) -> u64 {
        match self {
            Self::Ggml | Self::Ggmf => offset,
            Self::Ggjt(_) | Self::Ggcc => offset.next_multiple_of(32),
        }
    }

    /// The quantization version implied by the container version; `None` if the file type states
    /// it.
    pub fn quantization_version(self) -> Option<QuantizationVersion> {
        match self {
            Self::Ggml => None,
            Self::Ggmf | Self::Ggjt(1) => Some(QuantizationVersion::V0),
            Self::Ggjt(2) => Some(QuantizationVersion::V1),
            Self::Ggjt(_) | Self::Ggcc => Some(QuantizationVersion::V2),
        }
    }
}

/// The name that llama.cpp's converter writes into `general.description`.
impl fmt::Display for Container {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Ggml => f.write_str("GGMLv1"),
            Self::Ggmf => f.write_str("GGMFv1"),
            Self::Ggjt(version) => write!(f, "GGJTv{version}"),
            Self::Ggcc => f.write_str("GGCCv10"),
        }
    }
}
