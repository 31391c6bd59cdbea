//! The stored vocabulary, as bytes.

use super::container::Container;
use super::cursor::{Cursor, ReadError};
use super::header::{Field, Header, VocabularyLayout};

/// A stored token.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawToken {
    pub bytes: Vec<u8>,
    /// 0 if the file has no scores.
    pub score: f32,
}

/// Everything between the hyperparameters and the tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Vocabulary {
    pub tokens: Vec<RawToken>,
    /// Whether the file has scores.
    pub has_scores: bool,
    /// Merge pairs, in the byte-level alphabet.
    pub merges: Vec<(Vec<u8>, Vec<u8>)>,
    pub filters: Option<MelFilters>,
}

/// Whisper's mel filter bank.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MelFilters {
    /// Mel bands.
    pub rows: u32,
    /// Frequencies.
    pub columns: u32,
    pub values: Vec<f32>,
}

/// Maximum length of a token, much larger than that of any known model.
const MAX_TOKEN_BYTES: u64 = 1 << 16;
/// Maximum size of a filter bank. The largest known one has 128 bands of 201 frequencies.
const MAX_FILTER_VALUES: u32 = 1 << 20;

impl Vocabulary {
    /// Reads a vocabulary in the given layout.
    pub fn read(
        cursor: &mut Cursor,
        container: Container,
        layout: VocabularyLayout,
        header: &Header,
    ) -> Result<Self, ReadError> {
        let has_scores = container.has_scores() || layout == VocabularyLayout::Scored;
        let mut out = Self { has_scores, ..Self::default() };
        if layout == VocabularyLayout::AfterFilters {
            out.filters = Some(MelFilters::read(cursor)?);
        }
        let expected = header.get(Field::VocabSize).unwrap_or(0);
        let count = match layout {
            VocabularyLayout::Counted | VocabularyLayout::AfterFilters => {
                let at = cursor.at();
                let count = cursor.u32("token count")?;
                if count > expected || (layout == VocabularyLayout::Counted && count != expected) {
                    return Cursor::malformed(at, format!("{count} tokens for {expected} rows"));
                }
                count
            }
            _ => expected,
        };
        // Nothing is reserved in advance: each token takes at least 4 bytes of the file.
        for id in 0..count {
            let bytes = cursor.byte_string(MAX_TOKEN_BYTES, &format!("token {id}"))?;
            let score = if has_scores { cursor.f32(&format!("token {id}"))? } else { 0.0 };
            out.tokens.push(RawToken { bytes, score });
        }
        if layout == VocabularyLayout::WithMerges {
            let at = cursor.at();
            let expected = header.get(Field::Merges).unwrap_or(0);
            let count = cursor.u32("merge count")?;
            if count != expected {
                return Cursor::malformed(at, format!("{count} merges instead of {expected}"));
            }
            for id in 0..count {
                let mut part = || cursor.byte_string(MAX_TOKEN_BYTES, &format!("merge {id}"));
                out.merges.push((part()?, part()?));
            }
        }
        Ok(out)
    }
}

impl MelFilters {
    fn read(cursor: &mut Cursor) -> Result<Self, ReadError> {
        const WHAT: &str = "mel filter bank";
        let at = cursor.at();
        let (rows, columns) = (cursor.u32(WHAT)?, cursor.u32(WHAT)?);
        let count =
            rows.checked_mul(columns).filter(|count| (1..=MAX_FILTER_VALUES).contains(count));
        let Some(count) = count else {
            return Cursor::malformed(at, format!("mel filter bank has shape {rows} x {columns}"));
        };
        let bytes = cursor.bytes(u64::from(count) * 4, WHAT)?;
        let values = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
        Ok(Self { rows, columns, values })
    }
}
