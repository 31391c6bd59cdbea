//! Integration tests of the codecs.

mod block_layout;
mod edge_cases;
mod fuzz_seeds;
mod golden_hashes;
mod instruction_sets;
mod properties;
mod reference_vectors;
