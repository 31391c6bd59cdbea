//! A piece table: the text buffer behind the editor's main view.
//!
//! The document is a sequence of *pieces*, each of which points into one of two
//! backing stores. The `original` store holds the file as it was loaded and is
//! never modified; the `added` store only ever grows at its end. An edit
//! therefore touches a handful of small descriptors, not megabytes of text, and
//! undo amounts to putting the old descriptors back.
//!
//! Offsets are byte offsets, and every public method that accepts one checks
//! that it lies on a character boundary. Line and column conversions live at
//! the bottom of the file because the rest of the buffer does not care.

use std::fmt;
use std::ops::Range;

/// Which backing store a piece refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Store {
    Original,
    Added,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Piece {
    store: Store,
    start: usize,
    len: usize,
    /// Number of `\n` bytes inside the piece, cached so that jumping to a line
    /// in a large file does not require reading the whole file.
    newlines: usize,
}

impl Piece {
    fn end(&self) -> usize {
        self.start + self.len
    }
}

/// Everything that can go wrong when editing.
#[derive(Debug, PartialEq, Eq)]
pub enum EditError {
    OutOfBounds { offset: usize, len: usize },
    SplitsCharacter { offset: usize },
    EmptyHistory,
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::OutOfBounds { offset, len } => {
                write!(f, "offset {offset} is past the end of a document of {len} bytes")
            }
            EditError::SplitsCharacter { offset } => {
                write!(f, "offset {offset} falls inside a multi-byte character")
            }
            EditError::EmptyHistory => f.write_str("nothing to undo"),
        }
    }
}

impl std::error::Error for EditError {}

/// One reversible step. `at` is an index into the piece list, `removed` are the
/// descriptors that stood there, `inserted` says how many replaced them.
#[derive(Debug)]
struct Change {
    at: usize,
    removed: Vec<Piece>,
    inserted: usize,
}

#[derive(Debug, Default)]
pub struct PieceTable {
    original: String,
    added: String,
    pieces: Vec<Piece>,
    len: usize,
    undo: Vec<Change>,
    redo: Vec<Change>,
    /// Set while consecutive keystrokes may be merged into a single undo step.
    typing_at: Option<usize>,
}

impl PieceTable {
    pub fn new(text: impl Into<String>) -> Self {
        let original: String = text.into();
        let len = original.len();
        let mut pieces = Vec::new();
        if len > 0 {
            pieces.push(Piece {
                store: Store::Original,
                start: 0,
                len,
                newlines: count_newlines(&original),
            });
        }
        PieceTable { original, pieces, len, ..Default::default() }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn text_of(&self, piece: &Piece) -> &str {
        let store = match piece.store {
            Store::Original => &self.original,
            Store::Added => &self.added,
        };
        &store[piece.start..piece.end()]
    }

    /// Finds the piece containing `offset`, and the offset within that piece.
    /// An offset on a seam belongs to the piece on its right.
    fn locate(&self, offset: usize) -> Result<(usize, usize), EditError> {
        if offset > self.len {
            return Err(EditError::OutOfBounds { offset, len: self.len });
        }
        let mut base = 0;
        for (index, piece) in self.pieces.iter().enumerate() {
            if offset < base + piece.len {
                let within = offset - base;
                if !self.text_of(piece).is_char_boundary(within) {
                    return Err(EditError::SplitsCharacter { offset });
                }
                return Ok((index, within));
            }
            base += piece.len;
        }
        Ok((self.pieces.len(), 0))
    }

    /// Cuts `piece` down to `range`, recounting newlines in the shorter half only.
    fn slice(&self, piece: &Piece, range: Range<usize>) -> Piece {
        debug_assert!(range.start <= range.end && range.end <= piece.len);
        let text = self.text_of(piece);
        let kept = range.end - range.start;
        let newlines = if kept * 2 <= piece.len {
            count_newlines(&text[range.clone()])
        } else {
            piece.newlines - count_newlines(&text[..range.start]) - count_newlines(&text[range.end..])
        };
        Piece { store: piece.store, start: piece.start + range.start, len: kept, newlines }
    }

    pub fn insert(&mut self, offset: usize, text: &str) -> Result<(), EditError> {
        let (index, within) = self.locate(offset)?;
        if text.is_empty() {
            return Ok(());
        }
        let start = self.added.len();

        // Fast path: the user keeps typing right where the last insertion ended.
        // The preceding piece is then the tail of `added` and can simply grow.
        if within == 0 && index > 0 && self.typing_at == Some(offset) {
            let previous = &mut self.pieces[index - 1];
            if previous.store == Store::Added && previous.end() == start {
                self.added.push_str(text);
                previous.len += text.len();
                previous.newlines += count_newlines(text);
                self.len += text.len();
                self.redo.clear();
                self.typing_at = Some(offset + text.len());
                return Ok(());
            }
        }

        self.added.push_str(text);
        let fresh = Piece {
            store: Store::Added,
            start,
            len: text.len(),
            newlines: count_newlines(text),
        };
        if within == 0 {
            self.splice(index..index, vec![fresh]);
        } else {
            let whole = self.pieces[index];
            let left = self.slice(&whole, 0..within);
            let right = self.slice(&whole, within..whole.len);
            self.splice(index..index + 1, vec![left, fresh, right]);
        }
        self.typing_at = Some(offset + text.len());
        Ok(())
    }

    pub fn delete(&mut self, range: Range<usize>) -> Result<(), EditError> {
        let (first, head) = self.locate(range.start)?;
        let (last, tail) = self.locate(range.end)?;
        self.typing_at = None;
        if range.start >= range.end {
            return Ok(());
        }
        let mut kept = Vec::with_capacity(2);
        if head > 0 {
            let piece = self.pieces[first];
            kept.push(self.slice(&piece, 0..head));
        }
        let stop = if tail > 0 {
            let piece = self.pieces[last];
            kept.push(self.slice(&piece, tail..piece.len));
            last + 1
        } else {
            last
        };
        self.splice(first..stop, kept);
        Ok(())
    }

    /// Replaces a run of pieces and records how to get back.
    fn splice(&mut self, range: Range<usize>, replacement: Vec<Piece>) {
        let change = self.exchange(range, replacement);
        self.undo.push(change);
        self.redo.clear();
    }

    fn exchange(&mut self, range: Range<usize>, replacement: Vec<Piece>) -> Change {
        let gained: usize = replacement.iter().map(|p| p.len).sum();
        let inserted = replacement.len();
        let at = range.start;
        let removed: Vec<Piece> = self.pieces.splice(range, replacement).collect();
        let lost: usize = removed.iter().map(|p| p.len).sum();
        self.len = self.len + gained - lost;
        Change { at, removed, inserted }
    }

    pub fn undo(&mut self) -> Result<(), EditError> {
        let step = self.undo.pop().ok_or(EditError::EmptyHistory)?;
        let inverse = self.exchange(step.at..step.at + step.inserted, step.removed);
        self.redo.push(inverse);
        self.typing_at = None;
        Ok(())
    }

    pub fn redo(&mut self) -> Result<(), EditError> {
        let step = self.redo.pop().ok_or(EditError::EmptyHistory)?;
        let inverse = self.exchange(step.at..step.at + step.inserted, step.removed);
        self.undo.push(inverse);
        self.typing_at = None;
        Ok(())
    }

    /// Iterates over the document as borrowed chunks, in order. Saving a file is
    /// a loop over this iterator and a `write_all` per chunk.
    pub fn chunks(&self) -> impl Iterator<Item = &str> + '_ {
        self.pieces.iter().map(move |piece| self.text_of(piece))
    }

    pub fn line_count(&self) -> usize {
        1 + self.pieces.iter().map(|p| p.newlines).sum::<usize>()
    }

    /// Byte offset at which line `line` (zero-based) begins, if there is one.
    pub fn line_start(&self, line: usize) -> Option<usize> {
        if line == 0 {
            return Some(0);
        }
        let mut remaining = line;
        let mut base = 0;
        for piece in &self.pieces {
            if remaining > piece.newlines {
                remaining -= piece.newlines;
                base += piece.len;
                continue;
            }
            let position = self
                .text_of(piece)
                .bytes()
                .enumerate()
                .filter(|&(_, b)| b == b'\n')
                .nth(remaining - 1)
                .map(|(i, _)| i)
                .expect("cached newline count disagrees with the text");
            return Some(base + position + 1);
        }
        None
    }

    /// Line and column of an offset; the column counts characters, which is what
    /// the status bar shows. Tabs are expanded by the view, not here.
    pub fn position(&self, offset: usize) -> Result<(usize, usize), EditError> {
        let (index, within) = self.locate(offset)?;
        let mut line: usize = self.pieces[..index].iter().map(|p| p.newlines).sum();
        if within > 0 {
            line += count_newlines(&self.text_of(&self.pieces[index])[..within]);
        }
        let start = self.line_start(line).unwrap_or(0);
        let column = self.read(start..offset).chars().count();
        Ok((line, column))
    }

    /// Copies a range out of the document. Meant for short spans such as a line
    /// or the clipboard; bulk readers should prefer [`PieceTable::chunks`].
    pub fn read(&self, range: Range<usize>) -> String {
        let mut out = String::with_capacity(range.len());
        let mut base = 0;
        for chunk in self.chunks() {
            let from = range.start.saturating_sub(base).min(chunk.len());
            let to = range.end.saturating_sub(base).min(chunk.len());
            out.push_str(&chunk[from..to]);
            base += chunk.len();
            if base >= range.end {
                break;
            }
        }
        out
    }
}

impl fmt::Display for PieceTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.chunks().try_for_each(|chunk| f.write_str(chunk))
    }
}

fn count_newlines(text: &str) -> usize {
    text.bytes().filter(|&b| b == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserting_in_the_middle_splits_a_piece() {
        let mut table = PieceTable::new("The fox jumps.");
        table.insert(4, "quick brown ").unwrap();
        assert_eq!(table.to_string(), "The quick brown fox jumps.");
        assert_eq!(table.pieces.len(), 3);
    }

    #[test]
    fn typing_coalesces_into_one_undo_step() {
        let mut table = PieceTable::new("()");
        for (i, letter) in ["a", "r", "g", "s"].into_iter().enumerate() {
            table.insert(1 + i, letter).unwrap();
        }
        assert_eq!(table.to_string(), "(args)");
        table.undo().unwrap();
        assert_eq!(table.to_string(), "()");
        assert_eq!(table.undo(), Err(EditError::EmptyHistory));
    }

    #[test]
    fn deletion_may_span_several_pieces() {
        let mut table = PieceTable::new("north south");
        table.insert(5, " east").unwrap();
        table.delete(3..13).unwrap();
        assert_eq!(table.to_string(), "noruth");
        table.undo().unwrap();
        assert_eq!(table.read(0..10), "north east");
    }

    #[test]
    fn offsets_inside_characters_are_refused() {
        let mut table = PieceTable::new("naïve");
        assert_eq!(table.insert(3, "x"), Err(EditError::SplitsCharacter { offset: 3 }));
        assert!(table.delete(2..4).is_ok());
        assert_eq!(table.to_string(), "nave");
    }

    #[test]
    fn lines_are_found_across_seams() {
        let mut table = PieceTable::new("one\ntwo\n");
        table.insert(4, "one and a half\n").unwrap();
        assert_eq!(table.line_count(), 4);
        assert_eq!(table.line_start(2), Some(19));
        assert_eq!(table.position(21), Ok((2, 2)));
        assert_eq!(table.line_start(9), None);
    }
}
