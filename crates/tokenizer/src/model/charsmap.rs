//! `tokenizer.ggml.precompiled_charsmap`: SentencePiece's normalization of characters before a text
//! is split.
//!
//! Layout, little endian: u32 length in bytes of a double-array trie, the array of u32, then the
//! replacements in UTF-8, each terminated by NUL. An element of the array is
//!
//! ```text
//! node   bits 0-7 byte that leads to it, bit 8 a key ends here, bit 9 offset is multiplied by 256,
//! bits 10-30 offset
//! value  bit 31 set, bits 0-30 start of the replacement
//! ```
//!
//! The child of node n by byte b is at `n ^ offset(n) ^ b`, and its value at `n ^ offset(n)`.

use gguf::{Array, Error, ValueType};

use crate::error::invalid;

/// Key of the map.
pub(crate) const CHARSMAP: &str = "tokenizer.ggml.precompiled_charsmap";

/// Trie of replacements by the bytes that they replace.
pub(crate) struct Charsmap {
    nodes: Vec<u32>,
    replacements: Vec<u8>,
}

impl Charsmap {
    /// # Errors
    /// If it is corrupt: too short, or an entry points outside.
    pub fn read(array: &Array) -> Result<Self, Error> {
        let fault = |what: &str| invalid(CHARSMAP, what);
        if !matches!(array.element_type(), ValueType::U8 | ValueType::I8) {
            return Err(fault("is not an array of bytes"));
        }
        let bytes: Vec<u8> =
            array.iter().filter_map(|byte| byte.to_i64()).map(|byte| byte as u8).collect();
        let (size, rest) = bytes.split_first_chunk().ok_or_else(|| fault("has no length"))?;
        let (nodes, replacements) = rest
            .split_at_checked(u32::from_le_bytes(*size) as usize)
            .ok_or_else(|| fault("is shorter than its array"))?;
        let (nodes, remainder) = nodes.as_chunks();
        if nodes.is_empty() || !remainder.is_empty() {
            return Err(fault("has an array that is not a sequence of 32-bit words"));
        }
        if replacements.last() != Some(&0) || std::str::from_utf8(replacements).is_err() {
            return Err(fault("has replacements that are not UTF-8 texts terminated by NUL"));
        }
        let map = Self {
            nodes: nodes.iter().copied().map(u32::from_le_bytes).collect(),
            replacements: replacements.to_vec(),
        };
        let is_node = |node: u32| node & VALUE == 0;
        for (place, node) in (0..).zip(&map.nodes).filter(|(_, node)| is_node(**node)) {
            if ends_key(*node) && map.value(place ^ offset(*node)).is_none() {
                return Err(fault("has an entry that points outside"));
            }
        }
        Ok(map)
    }

    /// Returns the length of the longest replaceable prefix of `text`, and its replacement; `None`
    /// if there is none.
    pub fn replace(&self, text: &[u8]) -> Option<(usize, &[u8])> {
        let mut found = None;
        let mut place = offset(*self.nodes.first()?);
        // No key contains NUL, which would seem to lead to unused nodes.
        for (i, byte) in text.iter().take_while(|byte| **byte != 0).enumerate() {
            place ^= u32::from(*byte);
            // A value is not a node: its bit 31 is set.
            let Some(node) =
                self.node(place).filter(|node| node & (VALUE | 0xff) == u32::from(*byte))
            else {
                break;
            };
            place ^= offset(node);
            if ends_key(node) {
                found = Some((i + 1, place));
            }
        }
        let (len, place) = found?;
        Some((len, self.value(place)?))
    }

    fn node(&self, place: u32) -> Option<u32> {
        self.nodes.get(place as usize).copied()
    }

    fn value(&self, place: u32) -> Option<&[u8]> {
        let begin = self.node(place)? & !VALUE;
        let text = self.replacements.get(begin as usize..)?;
        text.get(..text.iter().position(|byte| *byte == 0)?)
    }
}

/// Bit that is set in values and clear in nodes.
const VALUE: u32 = 1 << 31;

fn ends_key(node: u32) -> bool {
    node & (1 << 8) != 0
}

fn offset(node: u32) -> u32 {
    // Bit 31 is not set in nodes.
    (node >> 10) << ((node & (1 << 9)) >> 6)
}
