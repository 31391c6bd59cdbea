//! Integration tests of recipes, importance matrices and quantization jobs.

mod imatrix;
mod multiple_outputs;
mod recipe;
mod reference_plans;
