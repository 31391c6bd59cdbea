//! Outputs in repositories of the Hub.
//!
//! The Hub takes a file by its SHA-256, which is known when the file is complete. An output is therefore written to a
//! directory of the user's cache, as any local output, and uploaded when all are complete: one commit for each repository.
//! After a failed upload the files stay.

use std::path::{Path, PathBuf};

use gguf_remote::{Location, RemoteOptions, Repository, UploadFile, UploadOptions};

use crate::commands::upload::summarize;
use crate::failure::Failure;
use crate::force::Force;
use crate::progress::Progress;
use crate::terminal;

/// Repositories that outputs go to.
#[derive(Default)]
pub struct HubOutputs {
    repositories: Vec<(Repository, PathBuf)>,
}

impl HubOutputs {
    /// Returns the local path of an output: in a directory of the cache for `hf:me/repo` and `hf:me/repo/name.gguf`; others
    /// unchanged.
    pub fn local_path(&mut self, path: &Path) -> Result<PathBuf, Failure> {
        let Some(word) = path.to_str().filter(|word| word.starts_with("hf:")) else {
            return Ok(path.to_owned());
        };
        let Location::Hub(Repository { name, file, revision }) = Location::parse(word)? else {
            return Ok(path.to_owned());
        };
        if file.as_deref().is_some_and(|file| !gguf::is_gguf(file)) {
            let what = format!("{word}: expected hf:me/repo, or hf:me/repo/name.gguf");
            return Err(Failure::Usage(what));
        }
        let Some(uploads) = gguf_remote::upload_directory() else {
            let what = "there is no home directory: set XDG_CACHE_HOME";
            return Err(Failure::Environment(what.into()));
        };
        let directory = uploads.join(format!("{name}@{revision}").replace('/', "--"));
        let repository = Repository { name, file: None, revision };
        if !self.repositories.iter().any(|(known, _)| *known == repository) {
            self.repositories.push((repository, directory.clone()));
        }
        let path = file.map_or(directory.clone(), |file| directory.join(file));
        let parent =
            if path == directory { &directory } else { path.parent().unwrap_or(&directory) };
        std::fs::create_dir_all(parent)
            .map_err(|fault| gguf::Error::environment("create", parent, fault))?;
        Ok(path)
    }

    /// Returns the location of an output as the user named it.
    pub fn shown(&self, path: &Path) -> PathBuf {
        let of_repository = |(repository, directory): &(Repository, PathBuf)| {
            let file = Some(name_in(directory, path)?);
            Some(Repository { file, ..repository.clone() }.to_string().into())
        };
        self.repositories.iter().find_map(of_repository).unwrap_or_else(|| path.to_owned())
    }

    /// Checks the token, and that no file exists that must not be replaced.
    pub fn prepare<'p>(
        &self,
        files: impl IntoIterator<Item = &'p Path>,
        force: &Force,
    ) -> Result<(), Failure> {
        let files: Vec<_> = files.into_iter().collect();
        for (repository, directory) in &self.repositories {
            let names: Vec<_> = files.iter().filter_map(|file| name_in(directory, file)).collect();
            let (options, remote) = (options(force), RemoteOptions::from_env());
            gguf_remote::prepare_upload(repository, &names, &options, remote)?;
        }
        Ok(())
    }

    /// Uploads the written files and removes their local copies.
    pub fn upload<'p>(
        self,
        files: impl IntoIterator<Item = &'p Path>,
        force: &Force,
    ) -> Result<(), Failure> {
        let files: Vec<_> = files.into_iter().collect();
        for (repository, directory) in &self.repositories {
            let files = files.iter().filter_map(|file| {
                Some(UploadFile { path: (*file).to_owned(), name: name_in(directory, file)? })
            });
            let files: Vec<_> = files.collect();
            let progress = Progress::new();
            let remote = RemoteOptions::from_env();
            let uploaded =
                gguf_remote::upload(repository, &files, &options(force), remote, &progress);
            progress.finish();
            let report = uploaded.inspect_err(|_| {
                terminal::note(format!(
                    "the output is kept: `gguf upload {} {repository}` uploads it",
                    directory.display()
                ));
            })?;
            summarize(repository, &report);
            for file in files {
                let removed = std::fs::remove_file(&file.path);
                removed.map_err(|fault| gguf::Error::environment("remove", &file.path, fault))?;
            }
        }
        Ok(())
    }
}

impl Drop for HubOutputs {
    /// Removes the directories, unless they have files.
    fn drop(&mut self) {
        for (_, directory) in &self.repositories {
            remove_empty(directory);
        }
    }
}

fn remove_empty(directory: &Path) {
    for entry in directory.read_dir().into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_empty(&entry.path());
        }
    }
    // Fails if there are files.
    let _ = std::fs::remove_dir(directory);
}

fn options(force: &Force) -> UploadOptions {
    UploadOptions {
        existing: force.existing(),
        records: gguf_remote::upload_directory(),
        ..UploadOptions::default()
    }
}

/// Returns the name in the repository of a file below the directory.
fn name_in(directory: &Path, file: &Path) -> Option<String> {
    let parts = file.strip_prefix(directory).ok()?.iter().map(std::ffi::OsStr::to_str);
    Some(parts.collect::<Option<Vec<_>>>()?.join("/"))
}
