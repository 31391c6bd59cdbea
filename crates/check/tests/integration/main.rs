//! Integration tests of the rules about models.

mod codes;
mod model_faults;
mod reference_faults;
mod sidecars;
