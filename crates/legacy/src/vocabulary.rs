//! The vocabulary as it stands in a file: bytes, not yet text.

use super::container::Container;
use super::cursor::{Cursor, Fault};
use super::header::{Field, Header, Tokens};

/// A token as it is stored.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct RawToken {
    pub bytes: Vec<u8>,
    /// 0 where the file has none.
    pub score: f32,
}

/// Everything between hyper-parameters and tensors.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Vocabulary {
    pub tokens: Vec<RawToken>,
    /// Whether the file has scores.
    pub scored: bool,
    /// Pairs to merge, in the alphabet of byte-level vocabularies.
    pub merges: Vec<(Vec<u8>, Vec<u8>)>,
    pub filters: Option<Filters>,
}

/// The filter bank of whisper.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Filters {
    /// Bands.
    pub rows: u32,
    /// Frequencies.
    pub columns: u32,
    pub values: Vec<f32>,
}

/// No token of a model is nearly as long.
const LONGEST: u64 = 1 << 16;
/// The largest filter banks have 128 bands of 201 frequencies.
const MOST_FILTERS: u32 = 1 << 20;

impl Vocabulary {
    /// Reads what `kind` of vocabulary follows a header.
    pub fn read(
        cursor: &mut Cursor,
        container: Container,
        kind: Tokens,
        header: &Header,
    ) -> Result<Self, Fault> {
        let mut out =
            Self { scored: container.has_scores() || kind == Tokens::Scored, ..Self::default() };
        if kind == Tokens::AfterFilters {
            out.filters = Some(Filters::read(cursor)?);
        }
        let expected = header.get(Field::Vocabulary).unwrap_or(0);
        let count = match kind {
            Tokens::Counted | Tokens::AfterFilters => {
                let at = cursor.at();
                let count = cursor.u32("the number of tokens")?;
                if count > expected || (kind == Tokens::Counted && count != expected) {
                    return Cursor::fault(at, format!("{count} tokens for {expected} rows"));
                }
                count
            }
            _ => expected,
        };
        // Not reserved: each token of a false count costs the file four bytes at least.
        for id in 0..count {
            let bytes = cursor.text(LONGEST, &format!("token {id}"))?;
            let score = if out.scored { cursor.f32(&format!("token {id}"))? } else { 0.0 };
            out.tokens.push(RawToken { bytes, score });
        }
        if kind == Tokens::WithMerges {
            let at = cursor.at();
            let expected = header.get(Field::Merges).unwrap_or(0);
            let count = cursor.u32("the number of merges")?;
            if count != expected {
                return Cursor::fault(at, format!("{count} merges instead of {expected}"));
            }
            for id in 0..count {
                let mut part = || cursor.text(LONGEST, &format!("merge {id}"));
                out.merges.push((part()?, part()?));
            }
        }
        Ok(out)
    }
}

impl Filters {
    fn read(cursor: &mut Cursor) -> Result<Self, Fault> {
        const WHAT: &str = "the filter bank";
        let at = cursor.at();
        let (rows, columns) = (cursor.u32(WHAT)?, cursor.u32(WHAT)?);
        let count = rows.checked_mul(columns).filter(|count| (1..=MOST_FILTERS).contains(count));
        let Some(count) = count else {
            return Cursor::fault(at, format!("a filter bank of {rows} by {columns}"));
        };
        let bytes = cursor.bytes(u64::from(count) * 4, WHAT)?;
        let values = bytes.as_chunks().0.iter().copied().map(f32::from_le_bytes).collect();
        Ok(Self { rows, columns, values })
    }
}
