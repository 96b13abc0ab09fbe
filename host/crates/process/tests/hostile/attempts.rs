//! System calls of a hostile program. Each attempt must fail, and its error is the result.

#![expect(clippy::print_stdout, reason = "what it says is how a test knows it")]

use std::{
    ffi::CString,
    io,
    net::{TcpListener, TcpStream, UdpSocket},
    os::{
        fd::IntoRawFd,
        unix::net::{UnixDatagram, UnixListener, UnixStream},
    },
};

use serde_json::{Map, Value};

/// An operation that no tool needs.
type Attempt = (&'static str, fn() -> io::Result<()>);

/// Sockets of every kind.
pub(crate) const SOCKETS: [Attempt; 8] = [
    ("tcp connect", || TcpStream::connect("127.0.0.1:9").map(drop)),
    ("tcp listen", || TcpListener::bind("127.0.0.1:0").map(drop)),
    ("udp", || UdpSocket::bind("127.0.0.1:0").map(drop)),
    ("unix connect", || UnixStream::connect("/run/some.sock").map(drop)),
    ("unix listen", || UnixListener::bind("own.sock").map(drop)),
    ("unix pair of messages", || UnixDatagram::pair().map(drop)),
    ("raw", || call(libc::SYS_socket, [2, 3, 1])),
    ("packets", || call(libc::SYS_socket, [17, 2, 0])),
];

/// All other operations that are denied by name or argument.
pub(crate) const ALL: [Attempt; 42] = [
    ("ptrace", || call(libc::SYS_ptrace, [0, 0, 0])),
    ("attach", || call(libc::SYS_ptrace, [16, parent(), 0])),
    ("read memory", || call(libc::SYS_process_vm_readv, [parent(), 0, 0])),
    ("write memory", || call(libc::SYS_process_vm_writev, [parent(), 0, 0])),
    ("signal the watcher", || call(libc::SYS_kill, [parent(), 9, 0])),
    ("signal everybody", || call(libc::SYS_kill, [1, 0, 0])),
    ("new session", || call(libc::SYS_setsid, [0, 0, 0])),
    ("new group", || call(libc::SYS_setpgid, [0, 0, 0])),
    ("mount", || call(libc::SYS_mount, [0, 0, 0])),
    ("unmount", || call(libc::SYS_umount2, [0, 0, 0])),
    ("new root", || call(libc::SYS_chroot, [text("/"), 0, 0])),
    ("unshare", || call(libc::SYS_unshare, [i64::from(libc::CLONE_NEWUSER), 0, 0])),
    ("clone into a space", || call(libc::SYS_clone, [i64::from(libc::CLONE_NEWUSER | 17), 0, 0])),
    ("enter a space", || call(libc::SYS_setns, [0, 0, 0])),
    ("bpf", || call(libc::SYS_bpf, [0, 0, 0])),
    ("keys", || call(libc::SYS_keyctl, [0, -4, 0])),
    ("page faults", || call(libc::SYS_userfaultfd, [1, 0, 0])),
    ("rings", || call(libc::SYS_io_uring_setup, [1, 0, 0])),
    ("counters", || call(libc::SYS_perf_event_open, [0, 0, 0])),
    ("kexec", || call(libc::SYS_kexec_load, [0, 0, 0])),
    ("a module", || call(libc::SYS_init_module, [0, 0, 0])),
    ("a descriptor of others", || call(libc::SYS_pidfd_getfd, [0, 0, 0])),
    ("memory of nobody", || call(libc::SYS_memfd_create, [text("x"), 0, 0])),
    ("shared segment", || call(libc::SYS_shmget, [0, 4096, 0o600])),
    ("message queue", || call(libc::SYS_msgget, [0, 0o600, 0])),
    ("mode by name", || call(libc::SYS_fchmodat, [-100, own_file(), 0o777])),
    ("mode", || call(libc::SYS_fchmod, [0, 0o777, 0])),
    ("owner by name", || call(libc::SYS_fchownat, [-100, own_file(), 0])),
    ("owner", || call(libc::SYS_fchown, [0, 0, 0])),
    ("attribute", || call(libc::SYS_setxattr, [own_file(), text("user.x"), text("x")])),
    ("times by name", || call(libc::SYS_utimensat, [-100, own_file(), 0])),
    ("made up times", || call(libc::SYS_utimensat, [program()?, 0, times()])),
    ("flags", || call(libc::SYS_ioctl, [program()?, libc::FS_IOC_SETFLAGS as i64, zeros()])),
    ("version", || call(libc::SYS_ioctl, [program()?, libc::FS_IOC_SETVERSION as i64, zeros()])),
    ("a volume", || call(libc::SYS_ioctl, [program()?, 0x5000_940e, zeros()])),
    ("names of others", || call(libc::SYS_inotify_add_watch, [watches()?, text("/etc"), 0xfff])),
    ("another tree", || call(467, [-100, text("/"), 0])),
    ("limits of others", || call(libc::SYS_prlimit64, [parent(), 4, own_file()])),
    ("processors of others", || call(libc::SYS_sched_setaffinity, [parent(), 8, own_file()])),
    ("priority of others", || call(libc::SYS_setpriority, [0, parent(), 5])),
    ("priority of all", || call(libc::SYS_setpriority, [2, 0, 5])),
    ("disk priority of others", || call(libc::SYS_ioprio_set, [1, parent(), 0])),
];

/// Prints the result of each attempt: "done", or the error number.
pub(crate) fn answer(attempts: &[Attempt]) {
    let tried = attempts.iter().map(|(what, attempt)| {
        let result = match attempt() {
            Ok(()) => Value::from("done"),
            Err(error) => Value::from(error.raw_os_error().unwrap_or_default()),
        };
        ((*what).to_owned(), result)
    });
    println!("{}", Value::Object(tried.collect::<Map<_, _>>()));
}

/// Makes a call fail as on a kernel that does not know it, here and in all descendants.
pub(crate) fn forget(call: i64) {
    use sallyport_walls::seccomp::{SeccompAction as Action, apply_filter};
    let absent = Action::Errno(libc::ENOSYS.cast_unsigned());
    apply_filter(&[(call, &[])], absent, Action::Allow).expect("a kernel with seccomp");
}

/// Memory that would be shared with children.
pub(crate) struct Shared(&'static mut [u8]);

impl Shared {
    pub(crate) fn bytes(&mut self) -> &mut [u8] {
        self.0
    }
}

#[expect(unsafe_code, reason = "no safe interface makes shared memory without a file")]
pub(crate) fn shared_memory(length: usize) -> io::Result<Shared> {
    let (prot, flags) =
        (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_ANONYMOUS);
    // SAFETY: a new mapping that nothing else owns and that is never unmapped.
    unsafe {
        let start = libc::mmap(std::ptr::null_mut(), length, prot, flags, -1, 0);
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Shared(std::slice::from_raw_parts_mut(start.cast(), length)))
    }
}

fn parent() -> i64 {
    i64::from(std::os::unix::process::parent_id())
}

/// This program's file, open for reading.
fn program() -> io::Result<i64> {
    std::fs::File::open("/proc/self/exe").map(|file| i64::from(file.into_raw_fd()))
}

/// A descriptor that could report changes in folders.
fn watches() -> io::Result<i64> {
    call_for(libc::SYS_inotify_init1, [0, 0, 0])
}

/// The address of two timestamps in the past.
fn times() -> i64 {
    Box::into_raw(Box::new([1_i64, 0, 1, 0])) as i64
}

/// The address of a zeroed buffer.
fn zeros() -> i64 {
    Box::into_raw(Box::new([0_u8; 4096])) as i64
}

/// The address of a static text.
fn text(text: &str) -> i64 {
    CString::new(text).expect("no NUL").into_raw() as i64
}

fn own_file() -> i64 {
    text("/proc/self/stat")
}

fn call(number: i64, arguments: [i64; 3]) -> io::Result<()> {
    call_for(number, arguments).map(drop)
}

#[expect(unsafe_code, reason = "the library has no names for what nobody should call")]
fn call_for(number: i64, [a, b, c]: [i64; 3]) -> io::Result<i64> {
    // SAFETY: the call is denied before the kernel looks at an argument. If it is not, the test
    // fails regardless of what happens to this process.
    match unsafe { libc::syscall(number, a, b, c, 0, 0, 0) } {
        -1 => Err(io::Error::last_os_error()),
        result => Ok(result),
    }
}
