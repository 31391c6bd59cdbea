//! Runs a program, sees each of its calls to the system that changes files, and spoils one.
//!
//! By `ptrace`, at the border to the kernel: nothing gets by, be it called through the C library or
//! not.
// Children are waited for by `waitpid`, which also tells when they stop.
#![allow(unsafe_code, clippy::zombie_processes)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use nix::errno::Errno;
use nix::libc::{self, user_regs_struct};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

/// What becomes of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Half of what was to be written is.
    Short,
    /// Nothing is done, and the call fails.
    Fails(Errno),
    /// The program is killed, and the call is not done.
    KilledBefore,
    /// The program is killed when the call is done.
    KilledAfter,
}

/// How a program ran.
pub struct Ran {
    /// The calls that change files, in order, by name.
    pub calls: Vec<&'static str>,
    /// The exit code, unless it was killed.
    pub code: Option<i32>,
    /// What it said.
    pub stderr: String,
}

/// How a call says which file it changes.
enum Of {
    /// By a file descriptor, the argument of this number.
    Fd(usize),
    /// By a path: all count.
    Path,
    /// It opens a file, with flags in the argument of this number: counts if it makes or empties it.
    Flags(usize),
    /// A request, the second argument, about the file of the first one: counts if it shares blocks.
    Request,
}

/// Every call that changes files or directories.
const CALLS: &[(libc::c_long, &str, Of)] = &[
    (libc::SYS_open, "open", Of::Flags(1)),
    (libc::SYS_openat, "openat", Of::Flags(2)),
    (libc::SYS_creat, "creat", Of::Path),
    (libc::SYS_write, "write", Of::Fd(0)),
    (libc::SYS_writev, "writev", Of::Fd(0)),
    (libc::SYS_pwrite64, "pwrite64", Of::Fd(0)),
    (libc::SYS_pwritev, "pwritev", Of::Fd(0)),
    (libc::SYS_pwritev2, "pwritev2", Of::Fd(0)),
    (libc::SYS_copy_file_range, "copy_file_range", Of::Fd(2)),
    (libc::SYS_sendfile, "sendfile", Of::Fd(0)),
    (libc::SYS_splice, "splice", Of::Fd(2)),
    (libc::SYS_ioctl, "ioctl", Of::Request),
    (libc::SYS_ftruncate, "ftruncate", Of::Fd(0)),
    (libc::SYS_truncate, "truncate", Of::Path),
    (libc::SYS_fallocate, "fallocate", Of::Fd(0)),
    (libc::SYS_fsync, "fsync", Of::Fd(0)),
    (libc::SYS_fdatasync, "fdatasync", Of::Fd(0)),
    (libc::SYS_sync_file_range, "sync_file_range", Of::Fd(0)),
    (libc::SYS_msync, "msync", Of::Path),
    (libc::SYS_rename, "rename", Of::Path),
    (libc::SYS_renameat, "renameat", Of::Path),
    (libc::SYS_renameat2, "renameat2", Of::Path),
    (libc::SYS_link, "link", Of::Path),
    (libc::SYS_linkat, "linkat", Of::Path),
    (libc::SYS_symlink, "symlink", Of::Path),
    (libc::SYS_symlinkat, "symlinkat", Of::Path),
    (libc::SYS_unlink, "unlink", Of::Path),
    (libc::SYS_unlinkat, "unlinkat", Of::Path),
    (libc::SYS_mkdir, "mkdir", Of::Path),
    (libc::SYS_mkdirat, "mkdirat", Of::Path),
    (libc::SYS_rmdir, "rmdir", Of::Path),
    (libc::SYS_mknod, "mknod", Of::Path),
    (libc::SYS_mknodat, "mknodat", Of::Path),
    (libc::SYS_chmod, "chmod", Of::Path),
    (libc::SYS_fchmod, "fchmod", Of::Fd(0)),
    (libc::SYS_fchmodat, "fchmodat", Of::Path),
    (libc::SYS_chown, "chown", Of::Path),
    (libc::SYS_lchown, "lchown", Of::Path),
    (libc::SYS_fchown, "fchown", Of::Fd(0)),
    (libc::SYS_fchownat, "fchownat", Of::Path),
    (libc::SYS_utimensat, "utimensat", Of::Path),
    (libc::SYS_setxattr, "setxattr", Of::Path),
    (libc::SYS_fsetxattr, "fsetxattr", Of::Fd(0)),
];

/// The calls that write a number of bytes, and which argument it is.
pub const SIZED: &[(&str, usize)] =
    &[("write", 2), ("pwrite64", 2), ("copy_file_range", 4), ("sendfile", 3)];

/// Runs `words` of a program in `dir`. The call of number `spoiled.0`, from 0, meets with the
/// fault. With `back_in_time`, each look at a clock shows an earlier second than the one before.
pub fn run(
    program: &str,
    words: &[&str],
    dir: &Path,
    spoiled: Option<(usize, Fault)>,
    back_in_time: bool,
) -> Ran {
    let mut said = tempfile::tempfile().unwrap();
    let mut command = Command::new(program);
    command.args(words).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(said.try_clone().unwrap());
    // SAFETY: between fork and exec only one call to the system is made, which allocates nothing
    // and takes no lock.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(io::Error::from)) };
    let child = command.spawn().unwrap();
    let main = Pid::from_raw(child.id() as i32);
    waitpid(main, None).unwrap();
    let options =
        Options::PTRACE_O_TRACESYSGOOD | Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL;
    ptrace::setoptions(main, options).unwrap();
    if back_in_time {
        without_clock_in_user_space(main);
    }
    ptrace::syscall(main, None).unwrap();
    let mut tracer = Tracer {
        main,
        dir: dir.canonicalize().unwrap(),
        calls: Vec::new(),
        spoiled,
        back_in_time,
        seconds_back: 0,
        inside: BTreeMap::new(),
    };
    let code = tracer.watch();
    let mut stderr = String::new();
    io::Seek::rewind(&mut said).unwrap();
    io::Read::read_to_string(&mut said, &mut stderr).unwrap();
    Ran { calls: tracer.calls, code, stderr }
}

struct Tracer {
    main: Pid,
    /// Files elsewhere do not count.
    dir: PathBuf,
    calls: Vec<&'static str>,
    spoiled: Option<(usize, Fault)>,
    back_in_time: bool,
    seconds_back: i64,
    /// The threads that are in a call, and what is to be done when it is over.
    inside: BTreeMap<Pid, After>,
}

/// What is done after a call.
#[derive(Clone, Copy)]
enum After {
    Nothing,
    Fail(Errno),
    Kill,
    TurnBack,
}

impl Tracer {
    /// Watches all threads up to the end, and returns the exit code if there is one.
    fn watch(&mut self) -> Option<i32> {
        // Threads that belong to this thread of ours: other tests trace programs of their own.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let mut new = BTreeSet::new();
        loop {
            let (thread, signal) = match waitpid(Pid::from_raw(-1), Some(flags)).unwrap() {
                WaitStatus::PtraceSyscall(thread) => {
                    self.at_border(thread);
                    (thread, None)
                }
                // A thread that was just made begins with this, as nothing of ours sends it.
                WaitStatus::Stopped(thread, Signal::SIGSTOP) if new.insert(thread) => {
                    (thread, None)
                }
                WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
                WaitStatus::PtraceEvent(thread, ..) => (thread, None),
                WaitStatus::Exited(thread, code) if thread == self.main => return Some(code),
                WaitStatus::Signaled(thread, ..) if thread == self.main => return None,
                _ => continue,
            };
            // Fails if the program was killed meanwhile.
            let _ = ptrace::syscall(thread, signal);
        }
    }

    /// A thread enters the kernel or comes back.
    fn at_border(&mut self, thread: Pid) {
        // Fails if the program was killed meanwhile.
        let Ok(mut registers) = ptrace::getregs(thread) else { return };
        if let Some(after) = self.inside.remove(&thread) {
            match after {
                After::Nothing => {}
                After::Fail(errno) => {
                    registers.rax = -(errno as i64) as u64;
                    let _ = ptrace::setregs(thread, registers);
                }
                After::Kill => kill(self.main, Signal::SIGKILL).unwrap(),
                After::TurnBack => self.turn_back(thread, registers.rsi),
            }
            return;
        }
        let mut after = After::Nothing;
        if self.back_in_time && registers.orig_rax == libc::SYS_clock_gettime as u64 {
            after = After::TurnBack;
        }
        if let Some(name) = self.counts(thread, &registers) {
            if let Some((number, fault)) = self.spoiled
                && number == self.calls.len()
            {
                after = self.spoil(thread, name, fault, &mut registers);
            }
            self.calls.push(name);
        }
        self.inside.insert(thread, after);
    }

    fn spoil(
        &self,
        thread: Pid,
        name: &str,
        fault: Fault,
        registers: &mut user_regs_struct,
    ) -> After {
        match fault {
            Fault::Short => {
                if let Some((_, argument)) = SIZED.iter().find(|(sized, _)| *sized == name) {
                    let len = argument_mut(registers, *argument);
                    *len = len.div_ceil(2);
                    let _ = ptrace::setregs(thread, *registers);
                }
                After::Nothing
            }
            Fault::Fails(errno) => {
                // A call that does not exist, and changes nothing.
                registers.orig_rax = u64::MAX;
                let _ = ptrace::setregs(thread, *registers);
                After::Fail(errno)
            }
            Fault::KilledBefore => {
                registers.orig_rax = u64::MAX;
                let _ = ptrace::setregs(thread, *registers);
                kill(self.main, Signal::SIGKILL).unwrap();
                After::Nothing
            }
            Fault::KilledAfter => After::Kill,
        }
    }

    /// The name of the call that a thread is about to make, if it changes files.
    fn counts(&self, thread: Pid, registers: &user_regs_struct) -> Option<&'static str> {
        let number = registers.orig_rax as libc::c_long;
        let (_, name, of) = CALLS.iter().find(|(known, ..)| *known == number)?;
        let argument = |n: usize| *argument_mut(&mut registers.clone(), n);
        let changes = match *of {
            Of::Path => true,
            Of::Fd(n) => self.is_file(thread, argument(n)),
            Of::Flags(n) => {
                let flags = argument(n) as i32;
                flags & (libc::O_CREAT | libc::O_TRUNC) != 0
            }
            Of::Request => {
                let shares = [libc::FICLONE, libc::FICLONERANGE].contains(&argument(1));
                shares && self.is_file(thread, argument(0))
            }
        };
        changes.then_some(*name)
    }

    /// Whether a file descriptor is of a file in our directory.
    fn is_file(&self, thread: Pid, fd: u64) -> bool {
        let link = format!("/proc/{thread}/fd/{}", fd as i32);
        std::fs::read_link(link).is_ok_and(|path| path.starts_with(&self.dir))
    }

    /// Makes the seconds, which a look at the clock has just written to `address`, less than those
    /// of the look before.
    fn turn_back(&mut self, thread: Pid, address: u64) {
        self.seconds_back += 2;
        let address = address as ptrace::AddressType;
        if let Ok(seconds) = ptrace::read(thread, address) {
            let _ = ptrace::write(thread, address, (seconds - self.seconds_back).max(0));
        }
    }
}

/// An argument of a call, by number from 0.
fn argument_mut(registers: &mut user_regs_struct, number: usize) -> &mut u64 {
    match number {
        0 => &mut registers.rdi,
        1 => &mut registers.rsi,
        2 => &mut registers.rdx,
        3 => &mut registers.r10,
        4 => &mut registers.r8,
        _ => &mut registers.r9,
    }
}

/// Hides from a program, before its first step, that it can read clocks without a call.
fn without_clock_in_user_space(thread: Pid) {
    /// Leads to the code that the kernel lends.
    const AT_SYSINFO_EHDR: i64 = 33;
    const AT_IGNORE: i64 = 1;
    let mut at = ptrace::getregs(thread).unwrap().rsp;
    let mut next = || {
        let word = ptrace::read(thread, at as ptrace::AddressType).unwrap();
        at += 8;
        (at - 8, word)
    };
    // On the stack: the number of words, words, 0, environment, 0, pairs of kind and value.
    next();
    for _ in 0..2 {
        while next().1 != 0 {}
    }
    loop {
        match next() {
            (_, 0) => return,
            (at, AT_SYSINFO_EHDR) => {
                ptrace::write(thread, at as ptrace::AddressType, AT_IGNORE).unwrap();
                return;
            }
            _ => next(),
        };
    }
}

/// Whether programs can be traced here: some containers forbid it.
pub fn is_allowed() -> bool {
    let mut command = Command::new("/bin/true");
    // SAFETY: as above.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(io::Error::from)) };
    let Ok(child) = command.spawn() else { return false };
    let main = Pid::from_raw(child.id() as i32);
    let stopped = matches!(waitpid(main, None), Ok(WaitStatus::Stopped(..)));
    let _ = kill(main, Signal::SIGKILL);
    let _ = waitpid(main, None);
    stopped && File::open("/proc/self/fd").is_ok()
}
