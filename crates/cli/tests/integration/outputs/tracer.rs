//! Traces the system calls of a program that change files, and injects a fault into one of them.
//!
//! Uses `ptrace`, so no call can bypass it.
// `waitpid` waits for children and their stops.
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

/// Fault of one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Writes half of the data.
    Short,
    /// Fails without effect.
    Fails(Errno),
    /// Kills the program before the call.
    KilledBefore,
    /// Kills the program after the call.
    KilledAfter,
}

/// Result of a run.
pub struct Ran {
    /// Calls that change files, in order.
    pub calls: Vec<&'static str>,
    /// Exit code; `None` if killed.
    pub code: Option<i32>,
    /// Standard error.
    pub stderr: String,
}

/// The argument of a system call that names the changed file.
enum Target {
    /// A file descriptor in this argument.
    Fd(usize),
    /// A path; all calls count.
    Path,
    /// Flags of an open call in this argument; counts if it creates or truncates the file.
    Flags(usize),
    /// An ioctl request in the second argument; counts if it shares blocks.
    Request,
}

/// All calls that change files or directories.
const CALLS: &[(libc::c_long, &str, Target)] = &[
    (libc::SYS_open, "open", Target::Flags(1)),
    (libc::SYS_openat, "openat", Target::Flags(2)),
    (libc::SYS_creat, "creat", Target::Path),
    (libc::SYS_write, "write", Target::Fd(0)),
    (libc::SYS_writev, "writev", Target::Fd(0)),
    (libc::SYS_pwrite64, "pwrite64", Target::Fd(0)),
    (libc::SYS_pwritev, "pwritev", Target::Fd(0)),
    (libc::SYS_pwritev2, "pwritev2", Target::Fd(0)),
    (libc::SYS_copy_file_range, "copy_file_range", Target::Fd(2)),
    (libc::SYS_sendfile, "sendfile", Target::Fd(0)),
    (libc::SYS_splice, "splice", Target::Fd(2)),
    (libc::SYS_ioctl, "ioctl", Target::Request),
    (libc::SYS_ftruncate, "ftruncate", Target::Fd(0)),
    (libc::SYS_truncate, "truncate", Target::Path),
    (libc::SYS_fallocate, "fallocate", Target::Fd(0)),
    (libc::SYS_fsync, "fsync", Target::Fd(0)),
    (libc::SYS_fdatasync, "fdatasync", Target::Fd(0)),
    (libc::SYS_sync_file_range, "sync_file_range", Target::Fd(0)),
    (libc::SYS_msync, "msync", Target::Path),
    (libc::SYS_rename, "rename", Target::Path),
    (libc::SYS_renameat, "renameat", Target::Path),
    (libc::SYS_renameat2, "renameat2", Target::Path),
    (libc::SYS_link, "link", Target::Path),
    (libc::SYS_linkat, "linkat", Target::Path),
    (libc::SYS_symlink, "symlink", Target::Path),
    (libc::SYS_symlinkat, "symlinkat", Target::Path),
    (libc::SYS_unlink, "unlink", Target::Path),
    (libc::SYS_unlinkat, "unlinkat", Target::Path),
    (libc::SYS_mkdir, "mkdir", Target::Path),
    (libc::SYS_mkdirat, "mkdirat", Target::Path),
    (libc::SYS_rmdir, "rmdir", Target::Path),
    (libc::SYS_mknod, "mknod", Target::Path),
    (libc::SYS_mknodat, "mknodat", Target::Path),
    (libc::SYS_chmod, "chmod", Target::Path),
    (libc::SYS_fchmod, "fchmod", Target::Fd(0)),
    (libc::SYS_fchmodat, "fchmodat", Target::Path),
    (libc::SYS_chown, "chown", Target::Path),
    (libc::SYS_lchown, "lchown", Target::Path),
    (libc::SYS_fchown, "fchown", Target::Fd(0)),
    (libc::SYS_fchownat, "fchownat", Target::Path),
    (libc::SYS_utimensat, "utimensat", Target::Path),
    (libc::SYS_setxattr, "setxattr", Target::Path),
    (libc::SYS_fsetxattr, "fsetxattr", Target::Fd(0)),
];

/// Calls with a byte count, and its argument.
pub const SIZED: &[(&str, usize)] =
    &[("write", 2), ("pwrite64", 2), ("copy_file_range", 4), ("sendfile", 3)];

/// Runs a program with `words` in `dir`, and injects a fault into call number `faulty.0`, from 0. With
/// `back_in_time`, each clock read returns an earlier second.
pub fn run(
    program: &str,
    words: &[&str],
    dir: &Path,
    faulty: Option<(usize, Fault)>,
    back_in_time: bool,
) -> Ran {
    let mut stderr_file = tempfile::tempfile().unwrap();
    let mut command = Command::new(program);
    command.args(words).current_dir(dir).stdin(Stdio::null()).stdout(Stdio::null());
    command.stderr(stderr_file.try_clone().unwrap());
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
        faulty,
        back_in_time,
        seconds_back: 0,
        inside: BTreeMap::new(),
    };
    let code = tracer.watch();
    let mut stderr = String::new();
    io::Seek::rewind(&mut stderr_file).unwrap();
    io::Read::read_to_string(&mut stderr_file, &mut stderr).unwrap();
    Ran { calls: tracer.calls, code, stderr }
}

struct Tracer {
    main: Pid,
    /// Only files in this directory count.
    dir: PathBuf,
    calls: Vec<&'static str>,
    faulty: Option<(usize, Fault)>,
    back_in_time: bool,
    seconds_back: i64,
    /// Threads inside a call, and the action after it.
    inside: BTreeMap<Pid, After>,
}

/// Action after a call.
#[derive(Clone, Copy)]
enum After {
    Nothing,
    Fail(Errno),
    Kill,
    TurnBack,
}

impl Tracer {
    /// Traces all threads to the end. Returns the exit code, if any.
    fn watch(&mut self) -> Option<i32> {
        // Only children of this thread: other tests trace their own programs.
        let flags = WaitPidFlag::__WALL | WaitPidFlag::__WNOTHREAD;
        let mut new = BTreeSet::new();
        loop {
            let (thread, signal) = match waitpid(Pid::from_raw(-1), Some(flags)).unwrap() {
                WaitStatus::PtraceSyscall(thread) => {
                    self.at_border(thread);
                    (thread, None)
                }
                // A new thread begins with SIGSTOP, which nothing else sends.
                WaitStatus::Stopped(thread, Signal::SIGSTOP) if new.insert(thread) => {
                    (thread, None)
                }
                WaitStatus::Stopped(thread, signal) => (thread, Some(signal)),
                WaitStatus::PtraceEvent(thread, ..) => (thread, None),
                WaitStatus::Exited(thread, code) if thread == self.main => return Some(code),
                WaitStatus::Signaled(thread, ..) if thread == self.main => return None,
                _ => continue,
            };
            // Fails if the program was killed.
            let _ = ptrace::syscall(thread, signal);
        }
    }

    /// Handles a thread at entry or exit of a call.
    fn at_border(&mut self, thread: Pid) {
        // Fails if the program was killed.
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
            if let Some((number, fault)) = self.faulty
                && number == self.calls.len()
            {
                after = self.inject(thread, name, fault, &mut registers);
            }
            self.calls.push(name);
        }
        self.inside.insert(thread, after);
    }

    fn inject(
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
                // Replaces the call by an invalid one, which has no effect.
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

    /// Returns the name of the call that a thread is about to make, if it changes files.
    fn counts(&self, thread: Pid, registers: &user_regs_struct) -> Option<&'static str> {
        let number = registers.orig_rax as libc::c_long;
        let (_, name, of) = CALLS.iter().find(|(known, ..)| *known == number)?;
        let argument = |n: usize| *argument_mut(&mut registers.clone(), n);
        let changes = match *of {
            Target::Path => true,
            Target::Fd(n) => self.is_file(thread, argument(n)),
            Target::Flags(n) => {
                let flags = argument(n) as i32;
                flags & (libc::O_CREAT | libc::O_TRUNC) != 0
            }
            Target::Request => {
                let shares = [libc::FICLONE, libc::FICLONERANGE].contains(&argument(1));
                shares && self.is_file(thread, argument(0))
            }
        };
        changes.then_some(*name)
    }

    /// Whether a file descriptor refers to a file in the directory.
    fn is_file(&self, thread: Pid, fd: u64) -> bool {
        let link = format!("/proc/{thread}/fd/{}", fd as i32);
        std::fs::read_link(link).is_ok_and(|path| path.starts_with(&self.dir))
    }

    /// Decreases the seconds that a clock read has written to `address`.
    fn turn_back(&mut self, thread: Pid, address: u64) {
        self.seconds_back += 2;
        let address = address as ptrace::AddressType;
        if let Ok(seconds) = ptrace::read(thread, address) {
            let _ = ptrace::write(thread, address, (seconds - self.seconds_back).max(0));
        }
    }
}

/// Returns an argument of a call, by number from 0.
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

/// Hides the vDSO from a program before it starts, so that clock reads are system calls.
fn without_clock_in_user_space(thread: Pid) {
    /// Auxiliary vector entry of the vDSO.
    const AT_SYSINFO_EHDR: i64 = 33;
    const AT_IGNORE: i64 = 1;
    let mut at = ptrace::getregs(thread).unwrap().rsp;
    let mut next = || {
        let word = ptrace::read(thread, at as ptrace::AddressType).unwrap();
        at += 8;
        (at - 8, word)
    };
    // Stack layout: argument count, arguments, 0, environment, 0, pairs of key and value.
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

/// Whether tracing is permitted; some containers forbid it.
pub fn is_allowed() -> bool {
    let mut command = Command::new("/bin/true");
    // SAFETY: as in `run`.
    unsafe { command.pre_exec(|| ptrace::traceme().map_err(io::Error::from)) };
    let Ok(child) = command.spawn() else { return false };
    let main = Pid::from_raw(child.id() as i32);
    let stopped = matches!(waitpid(main, None), Ok(WaitStatus::Stopped(..)));
    let _ = kill(main, Signal::SIGKILL);
    let _ = waitpid(main, None);
    stopped && File::open("/proc/self/fd").is_ok()
}
