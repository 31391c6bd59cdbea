//! Packs the files of the bundled calibration text: a JSON object of their contents by name, compressed.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::{env, io};

use flate2::Compression;
use flate2::write::ZlibEncoder;

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=text");
    let folder = |name| env::var(name).map_err(io::Error::other);
    let root = folder("CARGO_MANIFEST_DIR")?;
    let mut files = BTreeMap::new();
    for kind in ["chat", "code", "prose"] {
        for entry in fs::read_dir(Path::new(&root).join("text").join(kind))? {
            let entry = entry?;
            let name = format!("{kind}/{}", entry.file_name().to_string_lossy());
            // A checkout on Windows may have other line ends.
            files.insert(name, fs::read_to_string(entry.path())?.replace("\r\n", "\n"));
        }
    }
    let packed = File::create(Path::new(&folder("OUT_DIR")?).join("text.zlib"))?;
    let mut packed = ZlibEncoder::new(packed, Compression::best());
    serde_json::to_writer(&mut packed, &files)?;
    packed.finish().map(drop)
}
