//! Cache of the ids of words.

use std::sync::Mutex;

/// Maximum length of a cached word in bytes.
const MAX_WORD_LEN: usize = 15;
/// Maximum number of ids of a cached word.
const MAX_IDS: usize = 7;
/// Number of slots, a power of two. The table must fit the processor's cache.
const SLOTS: usize = 1 << 14;

/// A word and its ids.
#[derive(Clone, Copy, Default)]
struct Slot {
    /// Bytes of the word, and its length in the last byte: 0 for an empty slot.
    key: u128,
    ids: [u32; MAX_IDS],
    count: u32,
}

/// Direct-mapped cache of words: a word replaces another one in its slot.
pub(crate) struct WordCache(Box<[Slot]>);

impl WordCache {
    fn new() -> Self {
        Self(vec![Slot::default(); SLOTS].into())
    }

    /// Appends the ids of `text[start..end]`, computed by `encode` unless they are cached.
    #[inline]
    pub fn encode(
        &mut self,
        text: &[u8],
        (start, end): (usize, usize),
        out: &mut Vec<u32>,
        encode: impl FnOnce(&[u8], &mut Vec<u32>),
    ) {
        let Some(key) = key(text, start, end) else {
            return encode(&text[start..end], out);
        };
        let slot = &mut self.0[slot(key)];
        if slot.key == key {
            if slot.count == 1 {
                out.push(slot.ids[0]);
            } else {
                out.extend_from_slice(&slot.ids[..slot.count as usize]);
            }
            return;
        }
        let before = out.len();
        encode(&text[start..end], out);
        let ids = &out[before..];
        if let Some(place) = slot.ids.get_mut(..ids.len()) {
            place.copy_from_slice(ids);
            (slot.key, slot.count) = (key, ids.len() as u32);
        }
    }
}

/// Packs the word into a number; `None` if it is too long or empty.
#[inline]
fn key(text: &[u8], start: usize, end: usize) -> Option<u128> {
    let len = end - start;
    if len == 0 || len > MAX_WORD_LEN {
        return None;
    }
    let bytes = match text[start..].first_chunk::<16>() {
        // Shift out all bytes but those of the word.
        Some(chunk) => u128::from_le_bytes(*chunk) << (128 - 8 * len) >> (128 - 8 * len),
        None => {
            let mut bytes = [0; 16];
            bytes[..len].copy_from_slice(&text[start..end]);
            u128::from_le_bytes(bytes)
        }
    };
    Some(bytes | (len as u128) << 120)
}

/// Returns the slot of a key: the middle of a product, which depends on all bits of the key.
#[inline]
fn slot(key: u128) -> usize {
    let product = u128::from(key as u64 ^ 0x9e37_79b9_7f4a_7c15)
        * u128::from((key >> 64) as u64 ^ 0xe703_7ed1_a0b4_28db);
    ((product >> 64) as usize ^ product as usize) % SLOTS
}

/// Idle caches, kept warm for the next thread.
#[derive(Default)]
pub(crate) struct CachePool(Mutex<Vec<WordCache>>);

impl CachePool {
    /// Runs `work` with a cache.
    pub fn with(&self, work: impl FnOnce(&mut WordCache)) {
        // Caches are in the list only between uses, so a panic leaves none half-written.
        let lock = || self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let idle = lock().pop();
        let mut words = idle.unwrap_or_else(WordCache::new);
        work(&mut words);
        lock().push(words);
    }
}
