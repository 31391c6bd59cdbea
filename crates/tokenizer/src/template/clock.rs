//! Clocks. The standard library has none for WebAssembly in JavaScript.

use std::time::SystemTime;

pub use web_time::Instant;

/// Returns the present time.
#[cfg(not(all(target_family = "wasm", target_os = "unknown")))]
pub fn now() -> SystemTime {
    SystemTime::now()
}

/// Returns the present time.
#[cfg(all(target_family = "wasm", target_os = "unknown"))]
pub fn now() -> SystemTime {
    web_time::web::SystemTimeExt::to_std(web_time::SystemTime::now())
}
