//! Integration tests of calibration.

mod encoder;
