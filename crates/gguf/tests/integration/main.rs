//! Integration tests of the format.

mod faults;
mod official;
