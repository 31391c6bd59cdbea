//! Token texts in one buffer.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

/// Byte strings by id, without an allocation for each.
#[derive(Default)]
pub(crate) struct TokenTable {
    bytes: Vec<u8>,
    /// End of each string; the next one begins there. The texts of a vocabulary fit 32 bits.
    ends: Vec<u32>,
}

impl TokenTable {
    /// Returns the bytes of an id; `None` if it does not exist.
    #[inline]
    pub fn get(&self, id: u32) -> Option<&[u8]> {
        let id = id as usize;
        let end = *self.ends.get(id)?;
        let start = if id == 0 { 0 } else { *self.ends.get(id - 1)? };
        self.bytes.get(start as usize..end as usize)
    }

    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Appends the bytes that `write` writes, under the next id.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|id| self.get(id).unwrap_or_default())
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for TokenTable {
    fn from_iter<I: IntoIterator<Item = S>>(pieces: I) -> Self {
        let mut all = Self::default();
        for piece in pieces {
            all.push_with(|bytes| bytes.extend_from_slice(piece.as_ref()));
        }
        all
    }
}

/// Hash index of byte strings by content.
///
/// The hash has a random seed: a malicious file cannot cause collisions.
pub(crate) struct Index {
    ids: HashTable<u32>,
    hasher: DefaultHashBuilder,
    longest: usize,
}

impl Index {
    /// Indexes the `pieces` that `accepts` returns true for. Of equal ones the first counts; empty
    /// ones are skipped.
    pub fn new(pieces: &TokenTable, accepts: impl Fn(u32) -> bool) -> Self {
        let mut index = Self {
            ids: HashTable::with_capacity(pieces.len()),
            hasher: DefaultHashBuilder::default(),
            longest: 0,
        };
        let indexed = |(id, piece): &(u32, &[u8])| !piece.is_empty() && accepts(*id);
        for (id, piece) in (0..).zip(pieces.iter()).filter(indexed) {
            let hash = |piece: &[u8]| index.hasher.hash_one(piece);
            let same = |other: &u32| pieces.get(*other) == Some(piece);
            let rehash = |other: &u32| hash(pieces.get(*other).unwrap_or_default());
            index.ids.entry(hash(piece), same, rehash).or_insert(id);
            index.longest = index.longest.max(piece.len());
        }
        index
    }

    /// Returns the indexed ids, in any order.
    pub fn ids(&self) -> impl Iterator<Item = u32> {
        self.ids.iter().copied()
    }

    /// Returns the length of the longest indexed piece.
    pub fn longest(&self) -> usize {
        self.longest
    }

    /// Returns the id of the piece with these bytes. `pieces` are those of [`Index::new`].
    #[inline]
    pub fn find(&self, pieces: &TokenTable, bytes: &[u8]) -> Option<u32> {
        if bytes.len() > self.longest {
            return None;
        }
        let same = |id: &u32| pieces.get(*id) == Some(bytes);
        self.ids.find(self.hasher.hash_one(bytes), same).copied()
    }
}
