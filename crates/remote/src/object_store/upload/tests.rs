use std::sync::atomic::{AtomicBool, Ordering};

use object_store::memory::InMemory;
use object_store::multipart::MultipartStore;
use object_store::path::Path as Key;
use object_store::{MultipartId, PutResult};

use super::super::store::{Store, wait};
use super::*;

const PART_LEN: u64 = 100;
const TARGET: &str = "s3://b/dir/m.gguf";

fn object(store: &Store) -> Object {
    let key = Key::from("dir/m.gguf");
    let record = Object::record_key(&key).unwrap();
    Object {
        store: store.clone(),
        key,
        record,
        url: TARGET.parse().unwrap(),
        target: TARGET.into(),
    }
}

fn begin(store: &Store, layout: &OutputLayout, resume: &ResumeOptions) -> Upload {
    Upload::begin(object(store), Existing::Refuse, layout.clone(), PART_LEN, resume).unwrap()
}

fn finish(mut upload: Upload) -> Result<(), gguf::Error> {
    upload.close(&())?;
    Box::new(upload).commit()
}

/// Returns the object's bytes and the keys of all objects in the bucket.
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

/// Returns 1050 bytes of which 250 to 460 and the last 30 are gaps.
fn sample() -> (Vec<u8>, OutputLayout) {
    let gaps = vec![250..460, 1020..1050];
    let mut bytes: Vec<u8> = (0..1050u32).map(|i| (i % 251) as u8 + 1).collect();
    for gap in &gaps {
        bytes[gap.start as usize..gap.end as usize].fill(0);
    }
    (bytes, OutputLayout { len: 1050, gaps })
}

/// Writes the bytes outside gaps that begin below `end`, `piece` bytes at a time.
fn write(upload: &Upload, bytes: &[u8], piece: usize, end: usize) {
    for written in [0..250, 460..1020] {
        for start in written.clone().step_by(piece).filter(|start| *start < end) {
            let end = written.end.min(start + piece);
            upload.write_at(&bytes[start..end], start as u64).unwrap();
        }
    }
}

#[test]
fn objects_appear_on_commit() {
    for piece in [1, 7, 100, 333, 1000] {
        let store = Store::new(InMemory::new());
        let (bytes, layout) = sample();
        let mut upload = begin(&store, &layout, &ResumeOptions::NEVER);
        write(&upload, &bytes, piece, 1050);
        upload.close(&()).unwrap();
        assert_eq!(found(&store).0, None, "in pieces of {piece}");
        Box::new(upload).commit().unwrap();
        assert_eq!(found(&store), (Some(bytes), vec!["dir/m.gguf".into()]), "in pieces of {piece}");
    }
}

#[test]
fn incomplete_uploads_are_removed() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let upload = begin(&store, &layout, &ResumeOptions::NEVER);
    write(&upload, &bytes, 50, 700);
    assert_eq!(found(&store).1, ["dir/.m.gguf.unfinished.gguf-kit-part"]);
    let error = finish(upload).unwrap_err().to_string();
    assert!(error.contains("part 8 was not written"), "{error}");
    assert_eq!(found(&store), (None, vec![]));
}

#[test]
fn interrupted_uploads_resume() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let resumed = ResumeOptions { job: Some(7), resume: true, on_restart: &|| panic!("restarted") };
    let upload = begin(&store, &layout, &resumed);
    write(&upload, &bytes, 20, 700);
    drop(upload);
    let upload = begin(&store, &layout, &resumed);
    assert!(upload.is_uploaded(0..300) && upload.is_uploaded(500..700));
    // The next bytes are in a part that is all gap, and in an unwritten part.
    assert!(!upload.is_uploaded(299..301) && !upload.is_uploaded(700..701));
    // Uploaded bytes may be written again.
    write(&upload, &bytes, 70, 1050);
    finish(upload).unwrap();
    assert_eq!(found(&store), (Some(bytes), vec!["dir/m.gguf".into()]));
}

#[test]
fn uploads_of_other_jobs_restart() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let first = ResumeOptions { job: Some(7), resume: true, on_restart: &|| panic!("restarted") };
    let upload = begin(&store, &layout, &first);
    write(&upload, &bytes, 20, 700);
    drop(upload);
    let restarted = AtomicBool::new(false);
    let other = ResumeOptions {
        job: Some(8),
        resume: true,
        on_restart: &|| restarted.store(true, Ordering::Relaxed),
    };
    let upload = begin(&store, &layout, &other);
    assert!(restarted.load(Ordering::Relaxed) && !upload.is_uploaded(0..1));
    drop(upload);
    // A job that is not resumed ignores the earlier upload and leaves nothing.
    drop(begin(
        &store,
        &layout,
        &ResumeOptions { job: Some(8), resume: false, on_restart: &|| {} },
    ));
    assert_eq!(found(&store), (None, vec![]));
}

#[test]
fn objects_of_a_stopped_run_are_recognised() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let resumed = ResumeOptions { job: Some(7), resume: true, on_restart: &|| panic!("restarted") };
    let mut upload = begin(&store, &layout, &resumed);
    write(&upload, &bytes, 100, 1050);
    upload.close(&()).unwrap();
    // The run is stopped after the object is complete and before the record is removed.
    let runtime = runtime().unwrap();
    let record_key = Key::from("dir/.m.gguf.unfinished.gguf-kit-part");
    let record = wait(&runtime, async {
        store.objects.get(&record_key).await.unwrap().bytes().await.unwrap()
    });
    Box::new(upload).commit().unwrap();
    wait(&runtime, store.objects.put(&record_key, record.clone().into())).unwrap();
    // Another job does not take the object for its own.
    let other = ResumeOptions { job: Some(8), ..resumed };
    let refused = Upload::begin(object(&store), Existing::Refuse, layout.clone(), PART_LEN, &other);
    assert!(matches!(refused, Err(gguf::Error::Exists(_))));
    let refused = ResumeOptions { resume: false, ..resumed };
    let refused =
        Upload::begin(object(&store), Existing::Refuse, layout.clone(), PART_LEN, &refused);
    assert!(matches!(refused, Err(gguf::Error::Exists(_))));
    let upload = begin(&store, &layout, &resumed);
    assert!(upload.is_uploaded(0..1050));
    finish(upload).unwrap();
    assert_eq!(found(&store), (Some(bytes), vec!["dir/m.gguf".into()]));
    // An object of another length is another object.
    wait(&runtime, store.objects.put(&record_key, record.into())).unwrap();
    let other = PutPayload::from_static(b"other");
    wait(&runtime, store.objects.put(&Key::from("dir/m.gguf"), other)).unwrap();
    let refused = Upload::begin(object(&store), Existing::Refuse, layout, PART_LEN, &resumed);
    assert!(matches!(refused, Err(gguf::Error::Exists(_))));
}

/// A store that puts objects together, and answers with an error.
#[derive(Debug)]
struct LostAnswer(Arc<InMemory>);

#[async_trait::async_trait]
impl MultipartStore for LostAnswer {
    async fn create_multipart(&self, path: &Key) -> object_store::Result<MultipartId> {
        self.0.create_multipart(path).await
    }

    async fn put_part(
        &self,
        path: &Key,
        id: &MultipartId,
        part: usize,
        data: PutPayload,
    ) -> object_store::Result<PartId> {
        self.0.put_part(path, id, part, data).await
    }

    async fn complete_multipart(
        &self,
        path: &Key,
        id: &MultipartId,
        parts: Vec<PartId>,
    ) -> object_store::Result<PutResult> {
        self.0.complete_multipart(path, id, parts).await?;
        Err(object_store::Error::Generic { store: "S3", source: "500".into() })
    }

    async fn abort_multipart(&self, path: &Key, id: &MultipartId) -> object_store::Result<()> {
        self.0.abort_multipart(path, id).await
    }
}

#[test]
fn an_object_is_found_if_the_answer_is_lost() {
    let objects = Arc::new(InMemory::new());
    let store = Store { objects: objects.clone(), uploads: Arc::new(LostAnswer(objects)) };
    let (bytes, layout) = sample();
    let upload = begin(&store, &layout, &ResumeOptions::NEVER);
    write(&upload, &bytes, 100, 1050);
    finish(upload).unwrap();
    assert_eq!(found(&store), (Some(bytes), vec!["dir/m.gguf".into()]));
}

#[test]
fn concurrently_created_objects_are_kept() {
    let store = Store::new(InMemory::new());
    let (bytes, layout) = sample();
    let upload = begin(&store, &layout, &ResumeOptions::NEVER);
    write(&upload, &bytes, 100, 1050);
    let runtime = runtime().unwrap();
    let other = PutPayload::from_static(b"other");
    wait(&runtime, store.objects.put(&Key::from("dir/m.gguf"), other)).unwrap();
    assert!(matches!(finish(upload), Err(gguf::Error::Exists(_))));
    assert_eq!(found(&store), (Some(b"other".to_vec()), vec!["dir/m.gguf".into()]));
}

#[test]
fn part_counts_stay_within_limits() {
    assert_eq!(part_len(1), PART);
    assert_eq!(part_len(160_000 << 20), PART);
    for len in [(160_000u64 << 20) + 1, 1 << 40, 5 << 40] {
        assert!(len.div_ceil(part_len(len)) <= MAX_PARTS);
    }
}
