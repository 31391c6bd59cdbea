//! Conversion and export of checkpoints.

mod budget;
mod classes;
mod configurations;
mod damaged_checkpoints;
mod export;
mod fixtures;
mod formats;
mod hparams;
mod lora;
mod mmproj;
mod model_card;
mod models;
mod nonstandard_checkpoints;
mod reference_conversions;
mod reference_round_trips;
mod vocab;
