//! Zip format: `NAME/data.pkl`, and the storages as `NAME/data/KEY`, uncompressed so that they can
//! be mapped.

use std::collections::HashMap;
use std::io::BufReader;
use std::sync::Arc;

use gguf_store::Source;
use zip::{CompressionMethod, ZipArchive};

use super::input::Cursor;
use super::objects::Objects;
use super::{Fault, Storages};

/// Maximum number of directory entries: a hundred times that of the largest models.
const MAX_ENTRIES: usize = 10_000_000;

/// An open archive.
pub(super) struct Archive {
    /// Name without prefix to start, length, and whether the entry is uncompressed.
    entries: HashMap<String, (u64, u64, bool)>,
    /// Prefix of `data.pkl`.
    prefix: String,
    source: Arc<dyn Source>,
}

impl Archive {
    /// Reads the archive directory.
    pub fn open(source: Arc<dyn Source>) -> Result<Self, Fault> {
        let damaged =
            |_: zip::result::ZipError| Fault::Damaged("is not a complete zip archive".to_owned());
        let reader = BufReader::new(Cursor::new(source.clone()));
        let mut archive = ZipArchive::new(reader).map_err(damaged)?;
        if archive.len() > MAX_ENTRIES {
            return Err(Fault::Damaged(format!("claims {} entries", archive.len())));
        }
        let mut entries = HashMap::new();
        let mut prefix = None;
        for i in 0..archive.len() {
            let entry = archive.by_index_raw(i).map_err(damaged)?;
            let name = entry.name().map_err(damaged)?.into_owned();
            let start = entry
                .data_start()
                .ok_or_else(|| Fault::Damaged(format!("has an entry `{name}` without a start")))?;
            let stored = entry.compression() == CompressionMethod::Stored && !entry.encrypted();
            let len = entry.compressed_size();
            let end = start.checked_add(len).filter(|end| *end <= source.byte_len());
            if end.is_none() {
                let what = format!("ends within its entry `{name}`");
                return Err(Fault::Damaged(what));
            }
            if let Some(start) = name.strip_suffix("data.pkl") {
                prefix = Some(start.to_owned());
            }
            entries.insert(name, (start, len, stored));
        }
        let prefix = prefix.ok_or_else(|| {
            Fault::Unsupported(
                "is a zip archive without `data.pkl`, not a PyTorch checkpoint".to_owned(),
                "name a file written by torch.save",
            )
        })?;
        let entries = entries.into_iter().filter_map(|(name, entry): (String, _)| {
            Some((name.strip_prefix(&prefix)?.to_owned(), entry))
        });
        Ok(Self { entries: entries.collect(), prefix, source })
    }

    /// Returns the range of the pickle.
    pub fn pickle(&self) -> Result<(u64, u64), Fault> {
        if let Some((start, len)) = self.find("byteorder")? {
            let mut order = vec![0; len.min(16) as usize];
            self.source.read_at(&mut order, start)?;
            if order != b"little" {
                let what = "holds tensors in big-endian byte order".to_owned();
                return Err(Fault::Unsupported(what, "save it again on a little-endian machine"));
            }
        }
        self.find("data.pkl")?.ok_or_else(|| Fault::Damaged("has no entry `data.pkl`".to_owned()))
    }

    /// Returns the ranges of the storages that the pickle names.
    pub fn storages(&self, objects: &Objects) -> Result<Storages, Fault> {
        let mut found = Storages::new();
        for storage in objects.storages() {
            let name = format!("data/{}", storage.key);
            let range = self
                .find(&name)?
                .ok_or_else(|| Fault::Damaged(format!("has no entry `{}{name}`", self.prefix)))?;
            found.insert(storage.key.clone(), range);
        }
        Ok(found)
    }

    fn find(&self, name: &str) -> Result<Option<(u64, u64)>, Fault> {
        match self.entries.get(name) {
            None => Ok(None),
            Some((start, len, true)) => Ok(Some((*start, *len))),
            Some(_) => Err(Fault::Unsupported(
                format!("has compressed its entry `{}{name}`", self.prefix),
                "unpack it and pack it again without compression (zip -0)",
            )),
        }
    }
}
