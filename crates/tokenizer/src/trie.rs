//! Trie for longest-prefix matching.

use gguf::Error;

use crate::error::invalid;
use crate::vocabulary::TOKENS;

/// Id of a node without a key.
const NONE: u32 = u32::MAX;

/// Maximum key length in bytes. Real tokens have at most some hundreds; every position of a text is
/// compared with all keys that begin there, so a malicious file with longer keys could take hours.
const MAX_KEY_LEN: usize = 1024;

/// Trie of byte strings with an id each.
///
/// Nodes are numbered level by level, so that the children of each node are adjacent. The arrays
/// have an element for each node, so no index is out of bounds.
pub(crate) struct Trie {
    /// First child of each node; its last child precedes the first child of the next node.
    first_child: Vec<u32>,
    /// Byte that leads to each node; ascending among siblings.
    byte: Vec<u8>,
    /// Id of the key that ends at each node.
    id: Vec<u32>,
    /// Child of the root for each byte, where every lookup begins.
    root: Box<[u32; 256]>,
}

impl Trie {
    /// Builds a trie. Of equal keys the last one counts; empty ones are skipped.
    ///
    /// # Errors
    /// If a key exceeds the maximum length.
    pub fn new<'k>(keys: impl IntoIterator<Item = (&'k [u8], u32)>) -> Result<Self, Error> {
        let mut keys: Vec<_> = keys.into_iter().filter(|(key, _)| !key.is_empty()).collect();
        if let Some((key, id)) = keys.iter().find(|(key, _)| key.len() > MAX_KEY_LEN) {
            let fault = format!("token {id} has {} bytes, more than {MAX_KEY_LEN}", key.len());
            return Err(invalid(TOKENS, fault));
        }
        // Stable: equal keys stay in the order of their ids.
        keys.sort_by_key(|(key, _)| *key);
        let mut trie = Self {
            first_child: Vec::new(),
            byte: vec![0],
            id: vec![NONE],
            root: Box::new([NONE; 256]),
        };
        // For each node of a level, the keys that pass through it.
        let mut level = vec![keys.as_slice()];
        let mut depth = 0;
        while !level.is_empty() {
            let mut next = Vec::new();
            for through in level {
                trie.first_child.push(trie.byte.len() as u32);
                let ended = through.iter().take_while(|(key, _)| key.len() == depth).count();
                let longer = through.get(ended..).unwrap_or_default();
                for child in longer.chunk_by(|(a, _), (b, _)| a.get(depth) == b.get(depth)) {
                    let Some((key, _)) = child.first() else { continue };
                    let ending = child.iter().take_while(|(key, _)| key.len() == depth + 1).last();
                    trie.byte.push(key.get(depth).copied().unwrap_or_default());
                    trie.id.push(ending.map_or(NONE, |(_, id)| *id));
                    next.push(child);
                }
            }
            level = next;
            depth += 1;
        }
        trie.first_child.push(trie.byte.len() as u32);
        for node in 1..trie.first_child.get(1).copied().unwrap_or(1) {
            trie.root[usize::from(trie.byte[node as usize])] = node;
        }
        Ok(trie)
    }

    /// Returns the length and the id of each key that `text` begins with, the shortest first.
    pub fn prefixes<'t>(&'t self, text: &'t [u8]) -> impl Iterator<Item = (usize, u32)> + 't {
        let mut node = 0;
        text.iter()
            .enumerate()
            .map_while(move |(i, byte)| {
                node = if i == 0 {
                    Some(self.root[usize::from(*byte)]).filter(|node| *node != NONE)
                } else {
                    self.child(node, *byte)
                }?;
                Some((i + 1, self.id[node as usize]))
            })
            .filter(|(_, id)| *id != NONE)
    }

    /// Returns the length and the id of the longest key that `text` begins with.
    #[inline]
    pub fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        self.prefixes(text).last()
    }

    #[inline]
    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let (start, end) = (
            self.first_child[node as usize] as usize,
            self.first_child[node as usize + 1] as usize,
        );
        let children = &self.byte[start..end];
        let place = if children.len() <= 8 {
            children.iter().position(|child| *child == byte)?
        } else {
            children.binary_search(&byte).ok()?
        };
        Some((start + place) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trie(keys: &[&str]) -> Trie {
        Trie::new(keys.iter().map(|key| key.as_bytes()).zip(0..)).unwrap()
    }

    #[test]
    fn finds_all_prefixes() {
        let trie = trie(&["b", "a", "abc", "", "ab", "abcde", "a"]);
        let found = |text: &str| trie.prefixes(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(found("abcd"), [(1, 6), (2, 4), (3, 2)]);
        assert_eq!(found("b"), [(1, 0)]);
        assert_eq!(found("c"), []);
        assert_eq!(found(""), []);
        assert_eq!(trie.longest(b"abcdef"), Some((5, 5)));
    }

    #[test]
    fn nodes_with_many_children() {
        let keys: Vec<[u8; 2]> = (0..=255).map(|last| [7, last]).collect();
        let trie = Trie::new(keys.iter().map(|key| &key[..]).zip(0..)).unwrap();
        for last in 0..=255 {
            assert_eq!(trie.longest(&[7, last, 1]), Some((2, u32::from(last))));
        }
    }

    #[test]
    fn long_keys_are_refused() {
        let long = vec![b'a'; 1_000_000];
        let error = Trie::new([(&long[..], 3)]).err().unwrap().to_string();
        assert!(error.contains("token 3 has 1000000 bytes"), "{error}");
        assert!(trie(&[]).longest(b"a").is_none());
    }
}
