//! Advice to the system about memory.

/// Next use of a range of a mapped file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It reads the range soon: the system reads it ahead.
    WillNeed,
    /// It does not read the range soon: its pages are removed from the memory of the process. They stay in the page cache as long
    /// as other programs leave room.
    DontNeed,
    /// As `DontNeed`, and the pages leave the page cache too, if no other process has mapped them.
    Evict,
}
