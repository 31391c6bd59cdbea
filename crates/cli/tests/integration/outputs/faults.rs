//! Fault injection: after any failing system call each output is the old or the new file, and other files are
//! unchanged.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use nix::errno::Errno;

use crate::outputs::tracer::{self, Fault, Ran, SIZED};
use crate::outputs::writers::{Files, IN_PLACE, WRITERS, Writer, files, gguf, workshop};

/// Number of failing calls per command and fault, evenly chosen; `.ci/full faults` sets more.
fn faulty() -> usize {
    std::env::var("GGUF_TEST_FAULTS").ok().and_then(|count| count.parse().ok()).unwrap_or(2)
}

/// All faults.
const FAULTS: [Fault; 5] = [
    Fault::Short,
    Fault::Fails(Errno::ENOSPC),
    Fault::Fails(Errno::EIO),
    Fault::KilledBefore,
    Fault::KilledAfter,
];

/// Whether `name` may be neither old nor new: a model during an in-place edit, with its journal, until the edit
/// is recovered.
fn is_torn(name: &str, after: &Files) -> bool {
    after.keys().any(|other| *other == format!(".{name}.journal"))
}

/// Whether a file may remain after a fault other than a kill: resumable progress, if requested, and journals.
fn may_stay(writer: &Writer, name: &str) -> bool {
    let is_resumable = writer.words.contains("--resume") && name.contains(".unfinished.");
    is_resumable || name.ends_with(".journal")
}

/// Whether a file may remain after a kill.
fn is_ours(name: &str) -> bool {
    let name = name.rsplit('/').next().unwrap_or(name);
    gguf_store::is_unfinished(name.as_ref())
        || name.ends_with(".journal")
        || name.ends_with(".lock")
}

/// Writer with the files before and after its run.
struct Case {
    writer: &'static Writer,
    words: Vec<&'static str>,
    before: Files,
    after: Files,
    calls: Vec<&'static str>,
}

impl Case {
    fn new(writer: &'static Writer) -> Self {
        let dir = Self::prepared(writer);
        let before = files(dir.path());
        let mut words: Vec<_> = writer.words.split_whitespace().collect();
        if !in_place(writer) {
            words.push("--force");
        }
        let ran = run(&words, dir.path(), None, false);
        assert_eq!(ran.code, Some(0), "{}: {}", writer.name, ran.stderr);
        let after = files(dir.path());
        for name in writer.outputs {
            assert!(before.get(*name) != after.get(*name), "{}: {name}", writer.name);
        }
        Self { writer, words, before, after, calls: ran.calls }
    }

    /// Returns a directory with all inputs and, for writers that overwrite, private old outputs.
    fn prepared(writer: &Writer) -> tempfile::TempDir {
        use std::os::unix::fs::PermissionsExt;
        let dir = workshop(writer.words);
        if in_place(writer) {
            return dir;
        }
        for name in writer.outputs {
            let path = dir.path().join(name);
            fs::write(&path, format!("old {name}")).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        dir
    }

    /// Injects one fault and checks the files.
    fn inject(&self, number: usize, fault: Fault) {
        let dir = Self::prepared(self.writer);
        let ran = run(&self.words, dir.path(), Some((number, fault)), false);
        let after = files(dir.path());
        let call = ran.calls.get(number).copied().unwrap_or("no call");
        let what = format!("{}: {fault:?} at call {number}, {call}", self.writer.name);
        let killed = matches!(fault, Fault::KilledBefore | Fault::KilledAfter);

        self.assert_sound(&after, &what);
        let left: Vec<_> = after.keys().filter(|name| self.is_new(name)).collect();
        match ran.code {
            None => assert!(killed, "{what}: killed"),
            Some(0) => {
                for name in self.writer.outputs {
                    let (found, new) = (after.get(*name), self.after.get(*name));
                    assert!(found == new, "{what}: {name} is not the new one");
                }
            }
            Some(3) => assert!(!killed && fault != Fault::Short, "{what}: {}", ran.stderr),
            Some(code) => panic!("{what}: exit code {code}: {}", ran.stderr),
        }
        if killed {
            assert!(left.iter().all(|name| is_ours(name)), "{what}: {left:?} are left");
        } else if !matches!(call, "unlink" | "unlinkat" | "rmdir") {
            let all = left.iter().all(|name| may_stay(self.writer, name));
            assert!(all, "{what}: {left:?} are left");
        }
        for name in self.writer.outputs {
            let whole = [self.before.get(*name), self.after.get(*name)].contains(&after.get(*name));
            if !whole {
                let output = gguf(dir.path(), &format!("edit {name} --recover undo"));
                let stderr = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{what}, and then: {stderr}");
                let undone = files(dir.path());
                assert!(undone.get(*name) == self.before.get(*name), "{what}: {name} not undone");
            }
        }
        // The next run cleans up.
        if killed && !in_place(self.writer) {
            let output = gguf(dir.path(), &self.words.join(" "));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{what}, and then: {stderr}");
            assert!(files(dir.path()) == self.after, "{what}, and then: not as it should be");
        }
    }

    /// Asserts that each output is old or new, with permissions, and other files are unchanged.
    #[track_caller]
    fn assert_sound(&self, after: &Files, what: &str) {
        for (name, old) in &self.before {
            if !self.writer.outputs.contains(&name.as_str()) {
                assert!(after.get(name) == Some(old), "{what}: {name} is touched");
            }
        }
        for name in self.writer.outputs {
            let found = after.get(*name);
            let whole = found == self.before.get(*name) || found == self.after.get(*name);
            assert!(whole || is_torn(name, after), "{what}: {name} is neither old nor new");
        }
    }

    /// Whether a file exists neither before nor after.
    fn is_new(&self, name: &str) -> bool {
        !self.before.contains_key(name) && !self.after.contains_key(name)
    }

    /// Returns the calls to inject: all, or evenly chosen ones including first and last.
    fn chosen(&self) -> impl Iterator<Item = usize> {
        let count = self.calls.len();
        let steps = count.min(faulty());
        (0..steps).map(move |i| if steps < 2 { 0 } else { i * (count - 1) / (steps - 1) })
    }
}

fn in_place(writer: &Writer) -> bool {
    IN_PLACE.iter().any(|other| other.name == writer.name)
}

fn run(words: &[&str], dir: &Path, faulty: Option<(usize, Fault)>, back_in_time: bool) -> Ran {
    tracer::run(env!("CARGO_BIN_EXE_gguf"), words, dir, faulty, back_in_time)
}

fn skipped() -> bool {
    let skipped = !tracer::is_allowed();
    if skipped {
        eprintln!("SKIPPED: programs cannot be traced here");
    }
    skipped
}

#[test]
fn outputs_are_old_or_new_after_any_fault() {
    if skipped() {
        return;
    }
    let writers: Vec<_> = WRITERS.iter().chain(IN_PLACE).collect();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let mut runs = 0;
    std::thread::scope(|scope| {
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut runs = 0;
                    loop {
                        let i = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                        let Some(writer) = writers.get(i) else { return runs };
                        let case = Case::new(writer);
                        for number in case.chosen() {
                            let call = case.calls[number];
                            for fault in FAULTS {
                                let is_sized = SIZED.iter().any(|(sized, _)| *sized == call);
                                if fault != Fault::Short || is_sized {
                                    case.inject(number, fault);
                                    runs += 1;
                                }
                            }
                        }
                        eprintln!("{}: {:?}", writer.name, tally(&case.calls));
                    }
                })
            })
            .collect();
        for worker in workers {
            runs += worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    eprintln!("{runs} runs with a fault");
    assert!(runs > 40 * faulty());
}

fn tally(calls: &[&'static str]) -> BTreeMap<&'static str, usize> {
    let mut tally = BTreeMap::new();
    for call in calls {
        *tally.entry(*call).or_default() += 1;
    }
    tally
}

#[test]
fn clocks_may_go_backwards() {
    if skipped() {
        return;
    }
    for writer in WRITERS.iter().chain(IN_PLACE) {
        let case = Case::new(writer);
        let dir = Case::prepared(writer);
        let ran = run(&case.words, dir.path(), None, true);
        assert_eq!(ran.code, Some(0), "{}: {}", writer.name, ran.stderr);
        assert!(files(dir.path()) == case.after, "{}", writer.name);
    }
}

/// The tracer sees the same calls as `strace`.
#[test]
fn tracer_sees_every_call() {
    let strace = std::process::Command::new("strace").arg("-V").output();
    if skipped() || strace.is_err() {
        eprintln!("SKIPPED: there is no strace here");
        return;
    }
    // A writer whose calls do not depend on timing.
    let writer = WRITERS.iter().find(|writer| writer.name == "merge").unwrap();
    let case = Case::new(writer);
    let dir = Case::prepared(writer);
    let log = tempfile::NamedTempFile::new().unwrap();
    let kinds = "trace=%file,%desc";
    let mut command = std::process::Command::new("strace");
    command.args(["-f", "-y", "-e", kinds, "-o"]).arg(log.path());
    command.arg(env!("CARGO_BIN_EXE_gguf")).args(&case.words).current_dir(dir.path());
    assert!(command.output().unwrap().status.success());
    let log = fs::read_to_string(log.path()).unwrap();
    // Read-only calls; all others must be counted.
    let looks = [
        "access",
        "close",
        "execve",
        "fcntl",
        "flock",
        "fstat",
        "fstatfs",
        "getcwd",
        "getdents64",
        "ioctl",
        "lseek",
        "mmap",
        "newfstatat",
        "poll",
        "pread64",
        "read",
        "readlink",
        "readlinkat",
        "stat",
        "statfs",
        "statx",
        "faccessat",
        "faccessat2",
        "readv",
        "epoll_create1",
        "fadvise64",
        "lstat",
        "eventfd2",
    ];
    let place = dir.path().canonicalize().unwrap().display().to_string();
    let mut changes = Vec::new();
    for line in log.lines() {
        let Some(call) = line.split_whitespace().nth(1).and_then(|word| word.split_once('('))
        else {
            continue;
        };
        let name = call.0;
        let opens = name.starts_with("open");
        let makes = line.contains("O_CREAT") || line.contains("O_TRUNC");
        let elsewhere = ["write", "writev"].contains(&name) && !line.contains(&place);
        if (!opens && !looks.contains(&name) && !elsewhere) || (opens && makes) {
            changes.push(name);
        }
    }
    assert_eq!(changes, case.calls);
}
