//! The first bytes: which container a file is in.
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

use super::blocks::Generation;
use super::cursor::{Cursor, Fault};

/// A container from before GGUF.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// Without a version.
    Ggml,
    /// Version 1.
    Ggmf,
    /// With its version.
    Ggjt(u32),
    /// Version 10, of `ggllm.cpp`.
    Ggcc,
}

const GGML: u32 = 0x6767_6d6c;
const GGMF: u32 = 0x6767_6d66;
const GGJT: u32 = 0x6767_6a74;
const GGCC: u32 = 0x6767_6363;
/// An adapter: of the same time, and no model.
const GGLA: u32 = 0x6767_6c61;

/// Whether `path` is a file that begins like one from before GGUF.
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
    /// Reads magic and version.
    pub fn read(cursor: &mut Cursor) -> Result<Self, Fault> {
        let magic = cursor.u32("the magic")?;
        if magic == GGML {
            return Ok(Self::Ggml);
        }
        let at = cursor.at();
        let version = |cursor: &mut Cursor| cursor.u32("the version");
        match magic {
            GGMF => match version(cursor)? {
                1 => Ok(Self::Ggmf),
                other => Cursor::fault(at, format!("GGMF has a version 1, not {other}")),
            },
            GGJT => match version(cursor)? {
                version @ 1..=3 => Ok(Self::Ggjt(version)),
                other => Cursor::fault(at, format!("GGJT has versions 1 to 3, not {other}")),
            },
            GGCC => match version(cursor)? {
                10 => Ok(Self::Ggcc),
                other => Cursor::fault(at, format!("GGCC is known in version 10, not {other}")),
            },
            GGLA => Cursor::fault(0, "a LoRA adapter from before GGUF, not a model"),
            other => Cursor::fault(0, format!("the magic {other:#010x} is of no known format")),
        }
    }

    /// Whether each token has a score.
    pub fn has_scores(self) -> bool {
        self != Self::Ggml
    }

    /// Where tensor data that could begin at `offset` does begin.
    pub fn align(self, offset: u64) -> u64 {
        match self {
            Self::Ggml | Self::Ggmf => offset,
            Self::Ggjt(_) | Self::Ggcc => offset.next_multiple_of(32),
        }
    }

    /// The generation of blocks that the version stands for; `None` where the file type says it.
    pub fn generation(self) -> Option<Generation> {
        match self {
            Self::Ggml => None,
            Self::Ggmf | Self::Ggjt(1) => Some(Generation::Pairs),
            Self::Ggjt(2) => Some(Generation::Halves),
            Self::Ggjt(_) | Self::Ggcc => Some(Generation::Today),
        }
    }
}

/// As llama.cpp's converter writes it into the description.
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
