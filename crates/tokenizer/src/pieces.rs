//! Many short byte strings as one run of bytes.

/// Byte strings by id, without an allocation for each.
#[derive(Default)]
pub(crate) struct Pieces {
    bytes: Vec<u8>,
    /// Where each ends; the next begins there. A vocabulary is known to fit 32 bits.
    ends: Vec<u32>,
}

impl Pieces {
    /// The bytes with this id; `None` if there are none.
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

    /// Appends the bytes that `write` appends, under the next id.
    pub fn push_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(&mut self.bytes);
        self.ends.push(self.bytes.len() as u32);
    }

    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.len() as u32).map(|id| self.get(id).unwrap_or_default())
    }
}

impl<S: AsRef<[u8]>> FromIterator<S> for Pieces {
    fn from_iter<I: IntoIterator<Item = S>>(pieces: I) -> Self {
        let mut all = Self::default();
        for piece in pieces {
            all.push_with(|bytes| bytes.extend_from_slice(piece.as_ref()));
        }
        all
    }
}
