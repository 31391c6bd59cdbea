//! File names that Windows changes or takes for devices.

use std::path::Path;

/// Names of devices, with any extension and in any case.
const DEVICES: [&str; 6] = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"];

/// Names of devices that a digit follows.
const NUMBERED_DEVICES: [&str; 2] = ["COM", "LPT"];

/// Returns the reason why a file on Windows cannot have the name that `path` ends with.
pub(super) fn refusal(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_string_lossy();
    let stem = name.split(['.', ':']).next().unwrap_or_default().trim_end_matches(' ');
    let stem = stem.to_uppercase();
    let is_numbered = |device: &str| {
        let number = stem.strip_prefix(device).and_then(|rest| rest.parse::<u8>().ok());
        number.is_some_and(|number| number < 10)
    };
    if DEVICES.contains(&&*stem) || NUMBERED_DEVICES.into_iter().any(is_numbered) {
        Some("is the name of a device on Windows")
    } else if name.contains(':') {
        Some("has a colon, which separates the name of a stream from that of its file on Windows")
    } else if name.ends_with(['.', ' ']) {
        Some("ends with a dot or a space, which Windows removes")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_and_streams_are_refused() {
        let is_refused = |name: &str| refusal(&Path::new("models").join(name)).is_some();
        for name in ["NUL", "nul", "con.gguf", "Aux .gguf", "COM1", "lpt9.a.b", "CONOUT$", "NUL:"] {
            assert!(is_refused(name), "{name}");
        }
        for name in ["a.gguf:stream", "a.gguf.", "a.gguf ", "..."] {
            assert!(is_refused(name), "{name}");
        }
        for name in ["null", "CONSOLE.gguf", "COM", "COM10", "LPT1x", "nul-0.gguf", "a nul", ".a"] {
            assert!(!is_refused(name), "{name}");
        }
    }
}
