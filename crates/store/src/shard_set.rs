//! Finds all files of a model from one name.

use std::io;
use std::path::{Path, PathBuf};

use gguf::{Error, Finding, NameShard, is_gguf, select_model};

/// All files of one model, in shard order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardSet {
    paths: Vec<PathBuf>,
}

impl ShardSet {
    /// Finds the files of a model from
    ///
    /// - any one of its shards, even if that one is missing and others are not;
    /// - a directory with one model, as [`select_model`] selects it;
    /// - a pattern with `*` and `?` in the file name that matches files of one model only;
    /// - the path of a single file.
    ///
    /// Only file names are inspected.
    ///
    /// # Errors
    /// [`Error::File`] with code `shard-missing`, which lists the missing files; [`Error::Caller`]
    /// if there is no model or more than one; [`Error::Environment`] if the directory cannot be
    /// read.
    pub fn find(path: &Path) -> Result<Self, Error> {
        if path.is_dir() {
            return Self::only_one(path, path, is_gguf);
        }
        let name = path.file_name().and_then(|name| name.to_str());
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = directory.unwrap_or(Path::new("."));
        match name {
            Some(pattern) if pattern.contains(['*', '?']) && !path.exists() => {
                Self::only_one(directory, path, |name| matches(pattern.as_bytes(), name.as_bytes()))
            }
            Some(name) => match NameShard::strip(name) {
                Some((prefix, shard)) => Self::complete(path, prefix, shard.count),
                None => Self::plain(path),
            },
            None => Self::plain(path),
        }
    }

    /// Returns the only file of the model at `path`; `done` names the change in the error message.
    ///
    /// # Errors
    /// As [`ShardSet::find`]; [`Error::Caller`] with code `output-missing` if the model is sharded.
    pub fn single_file(path: &Path, done: &str) -> Result<PathBuf, Error> {
        match Self::find(path)?.paths() {
            [file] => Ok(file.clone()),
            _ => {
                let what = format!("only a single file can be {done} in place");
                Err(Error::request("output-missing", what, "give -o"))
            }
        }
    }

    /// Returns the paths in shard order.
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    fn plain(path: &Path) -> Result<Self, Error> {
        if !path.exists() {
            return Err(Error::environment("open", path, io::ErrorKind::NotFound.into()));
        }
        Ok(Self { paths: vec![path.to_owned()] })
    }

    /// Returns all shards of the set of `member`, or an error that lists the missing ones.
    fn complete(member: &Path, prefix: &str, count: u32) -> Result<Self, Error> {
        let paths: Vec<PathBuf> = (1..=count)
            .map(|number| member.with_file_name(NameShard { number, count }.file_name(prefix)))
            .collect();
        let missing: Vec<&PathBuf> = paths.iter().filter(|path| !path.exists()).collect();
        if missing.len() == paths.len() {
            return Err(Error::environment("open", member, io::ErrorKind::NotFound.into()));
        }
        if missing.is_empty() {
            return Ok(Self { paths });
        }
        let names = missing.iter().map(|path| file_name(path));
        let verb = if missing.len() == 1 { "is" } else { "are" };
        let message =
            format!("{} of {count} shards {verb} missing: {}", missing.len(), list(names));
        let finding = Finding::error("shard-missing", message)
            .help("download or copy them into the same directory");
        Err(finding.into())
    }

    /// Finds the only model among the files of a directory that `matches` accepts.
    fn only_one(
        directory: &Path,
        requested: &Path,
        matches: impl Fn(&str) -> bool,
    ) -> Result<Self, Error> {
        let fail = |source| Error::environment("list", directory, source);
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            if matches(name) && !path.is_dir() {
                names.push(name.to_owned());
            }
        }
        let model = select_model(requested.display().to_string(), names, "");
        let name = model?;
        Self::find(&directory.join(name))
    }
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

/// Joins the first names: directories can hold thousands of files.
fn list(names: impl ExactSizeIterator<Item = String>) -> String {
    const SHOWN: usize = 10;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.take(SHOWN).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// Whether `name` matches a pattern in which `*` matches any bytes and `?` one byte.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    // Position to resume at when the rest after the last star does not match: the star takes one
    // more byte.
    let mut retry = None;
    let (mut p, mut n) = (0, 0);
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                retry = Some((p + 1, n));
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => {
                let Some((after_star, from)) = retry else { return false };
                retry = Some((after_star, from + 1));
                (p, n) = (after_star, from + 1);
            }
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let cases = [
            ("*", "", true),
            ("*.gguf", "a.gguf", true),
            ("*.gguf", "a.gguf.part", false),
            ("m-*-of-*.gguf", "m-00001-of-00002.gguf", true),
            ("m-?.gguf", "m-1.gguf", true),
            ("m-?.gguf", "m-12.gguf", false),
            ("*a*ab", "aaab", true),
            ("a**", "a", true),
            ("a", "ab", false),
        ];
        for (pattern, name, expected) in cases {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
    }
}
