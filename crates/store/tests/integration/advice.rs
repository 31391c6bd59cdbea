//! Advice about mapped files changes which pages are in memory, not their contents.
#![cfg(target_os = "linux")]

use std::fs::File;
use std::io::IoSliceMut;

use gguf_store::{Advice, LocalFile, Source};
use rustix::io::{ReadWriteFlags, preadv2};

/// Magic number of tmpfs, whose pages have no other place.
const TMPFS: i64 = 0x0102_1994;

/// Bytes of the file: more than the system reads ahead by itself.
const LEN: usize = 8 << 20;

#[test]
fn evicted_pages_are_read_again() {
    // Not in the usual temporary folder, which may be in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let path = folder.path().join("m.gguf");
    let content: Vec<u8> = (0..LEN).map(|i| (i % 251) as u8).collect();
    std::fs::write(&path, &content).unwrap();
    let read = File::open(&path).unwrap();
    read.sync_all().unwrap();
    let is_cached = |at: usize| {
        let mut byte = [0];
        preadv2(&read, &mut [IoSliceMut::new(&mut byte)], at as u64, ReadWriteFlags::NOWAIT)
            == Ok(1)
    };
    let file = LocalFile::open(&path).unwrap();
    let mapped = |file: &LocalFile| file.as_slice() == Some(&content[..]);
    assert!(mapped(&file));
    file.advise(0..LEN as u64, Advice::DontNeed);
    assert!(is_cached(0) && mapped(&file));
    file.advise(5..LEN as u64 - 5, Advice::Evict);
    if rustix::fs::fstatfs(&read).unwrap().f_type as i64 == TMPFS {
        eprintln!("SKIPPED: the files of {} are in memory", folder.path().display());
    } else {
        assert!(!is_cached(LEN / 2));
    }
    file.advise(0..LEN as u64, Advice::WillNeed);
    assert!(mapped(&file));
    // Beyond the file.
    file.advise(0..LEN as u64 + 1, Advice::Evict);
    file.advise(9..9, Advice::Evict);
    assert!(mapped(&file));
}
