//! Values of `--outtype` and `TYPE`, and their list for help texts.

use gguf_quantize::recipe::{Preset, Target, UnknownTarget};

/// Type of an output.
#[derive(Clone, Copy)]
pub enum Outtype {
    /// 16-bit type of the source.
    Auto,
    /// Quantization preset or tensor type.
    Target(Target),
}

impl std::str::FromStr for Outtype {
    type Err = UnknownTarget;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.eq_ignore_ascii_case("auto") {
            Ok(Self::Auto)
        } else {
            text.parse().map(Self::Target)
        }
    }
}

impl Outtype {
    /// Returns the target; `None` for `auto`.
    pub fn target(self) -> Option<Target> {
        match self {
            Self::Auto => None,
            Self::Target(target) => Some(target),
        }
    }
}

/// Returns all presets with number and description, one per line.
pub fn table() -> String {
    let lines = Preset::ALL.iter().map(|mix| {
        let aliases: Vec<_> = mix.aliases().collect();
        let aliases = if aliases.is_empty() {
            String::new()
        } else {
            format!(" (also {})", aliases.join(", "))
        };
        format!("  {:>2}  {:<9} {}{aliases}\n", mix.number(), mix.name(), mix.description())
    });
    format!("Quantization types, case-insensitive or by number:\n{}", lines.collect::<String>())
}
