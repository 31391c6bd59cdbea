//! Integration tests of the rules about models.

mod codes;
mod known_faults;
mod model_faults;
mod reference_faults;
mod reference_vocabularies;
mod sidecars;
