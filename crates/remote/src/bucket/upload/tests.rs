use std::sync::atomic::{AtomicBool, Ordering};

use object_store::memory::InMemory;
use object_store::path::Path as Key;

use super::super::store::{Store, wait};
use super::*;

const PART_LEN: u64 = 100;
const TARGET: &str = "s3://b/dir/m.gguf";

fn object(store: &Store) -> Object {
    let key = Key::from("dir/m.gguf");
    let record = Object::record_of(&key).unwrap();
    Object {
        store: store.clone(),
        key,
        record,
        url: TARGET.parse().unwrap(),
        target: TARGET.into(),
    }
}

fn begin(store: &Store, layout: &Layout, unfinished: &Unfinished) -> Upload {
    Upload::begin(object(store), Existing::Refuse, layout.clone(), PART_LEN, unfinished).unwrap()
}

fn finish(mut upload: Upload) -> Result<(), gguf::Error> {
    upload.close(&())?;
    Box::new(upload).commit()
}

/// The object's bytes, and the names of all that is in the bucket.
fn found(store: &Store) -> (Option<Vec<u8>>, Vec<String>) {
    let runtime = runtime().unwrap();
    let bytes = wait(&runtime, async {
        let object = store.objects.get(&Key::from("dir/m.gguf")).await.ok()?;
        Some(object.bytes().await.unwrap().to_vec())
    });
    let listing = wait(&runtime, store.objects.list_with_delimiter(Some(&Key::from("dir"))));
    let objects = listing.unwrap().objects.into_iter();
    (bytes, objects.map(|object| object.location.to_string()).collect())
}

/// 1050 bytes of which nobody writes 250 to 460 and the last 30.
fn sample() -> (Vec<u8>, Layout) {
    let gaps = vec![250..460, 1020..1050];
    let mut bytes: Vec<u8> = (0..1050u32).map(|i| (i % 251) as u8 + 1).collect();
    for gap in &gaps {
        bytes[gap.start as usize..gap.end as usize].fill(0);
    }
    (bytes, Layout { len: 1050, gaps })
}

/// Writes what is not in gaps and begins below `end`, in pieces.
fn write(upload: &Upload, bytes: &[u8], piece: usize, end: usize) {
    for written in [0..250, 460..1020] {
        for start in written.clone().step_by(piece).filter(|start| *start < end) {
            let end = written.end.min(start + piece);
            upload.write_at(&bytes[start..end], start as u64).unwrap();
        }
    }
}

#[test]
fn an_object_is_what_was_written_and_appears_when_it_is_complete() {
    for piece in [1, 7, 100, 333, 1000] {
        let store = Store::new(InMemory::new());
        let (bytes, layout) = sample();
        let mut upload = begin(&store, &layout, &Unfinished::LOST);
        write(&upload, &bytes, piece, 1050);
        upload.close(&()).unwrap();
        assert_eq!(found(&store).0, None, "in pieces of {piece}");
        Box::new(upload).commit().unwrap();
        assert_eq!(found(&store), (Some(bytes), vec!["dir/m.gguf".into()]), "in pieces of {piece}");
    }
}

#[test]
fn what_is_not_complete_leaves_nothing() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let upload = begin(&store, &layout, &Unfinished::LOST);
    write(&upload, &bytes, 50, 700);
    assert_eq!(found(&store).1, ["dir/.m.gguf.unfinished.gguf-kit-part"]);
    let error = finish(upload).unwrap_err().to_string();
    assert!(error.contains("part 8 was not written"), "{error}");
    assert_eq!(found(&store), (None, vec![]));
}

#[test]
fn work_goes_on_where_it_was_interrupted() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let resumed = Unfinished { work: Some(7), resume: true, anew: &|| panic!("anew") };
    let upload = begin(&store, &layout, &resumed);
    write(&upload, &bytes, 20, 700);
    drop(upload);
    let upload = begin(&store, &layout, &resumed);
    assert!(upload.has(0..300) && upload.has(500..700));
    // The next bytes are in a part of zeros alone, and in one of which nothing has come.
    assert!(!upload.has(299..301) && !upload.has(700..701));
    // What is there may come again.
    write(&upload, &bytes, 70, 1050);
    finish(upload).unwrap();
    assert_eq!(found(&store), (Some(bytes), vec!["dir/m.gguf".into()]));
}

#[test]
fn other_work_begins_anew() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let first = Unfinished { work: Some(7), resume: true, anew: &|| panic!("anew") };
    let upload = begin(&store, &layout, &first);
    write(&upload, &bytes, 20, 700);
    drop(upload);
    let told = AtomicBool::new(false);
    let other =
        Unfinished { work: Some(8), resume: true, anew: &|| told.store(true, Ordering::Relaxed) };
    let upload = begin(&store, &layout, &other);
    assert!(told.load(Ordering::Relaxed) && !upload.has(0..1));
    drop(upload);
    // Nor does work that is not to be resumed look at it, and it leaves nothing.
    drop(begin(&store, &layout, &Unfinished { work: Some(8), resume: false, anew: &|| {} }));
    assert_eq!(found(&store), (None, vec![]));
}

#[test]
fn what_appeared_meanwhile_stays() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let upload = begin(&store, &layout, &Unfinished::LOST);
    write(&upload, &bytes, 100, 1050);
    let runtime = runtime().unwrap();
    let other = PutPayload::from_static(b"other");
    wait(&runtime, store.objects.put(&Key::from("dir/m.gguf"), other)).unwrap();
    assert!(matches!(finish(upload), Err(gguf::Error::Exists(_))));
    assert_eq!(found(&store), (Some(b"other".to_vec()), vec!["dir/m.gguf".into()]));
}

#[test]
fn parts_are_as_many_as_stores_take() {
    assert_eq!(part_len(1), PART);
    assert_eq!(part_len(160_000 << 20), PART);
    for len in [(160_000u64 << 20) + 1, 1 << 40, 5 << 40] {
        assert!(len.div_ceil(part_len(len)) <= MOST_PARTS);
    }
}
