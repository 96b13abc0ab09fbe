//! seccomp: denies the system calls that bypass the other walls.
//!
//! The list contains denied calls, not allowed ones. Programs of every kind have to run, and their
//! calls differ with every version of their language. It denies calls that no tool needs, calls
//! that could leave the process group, and calls that change a file's metadata without opening it,
//! which Landlock does not cover. A denied call fails with `EPERM`; programs continue or report it.

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, ENOSYS, EPERM, NETLINK_ROUTE, SOCK_DGRAM, SOCK_RAW,
};
pub(super) use sallyport_walls::seccomp::is_supported;
use sallyport_walls::seccomp::{
    ArgumentTest::{self, Above, Below, Bits, Is, IsNot, NotNull},
    CallRule, Error, SeccompAction as Action, apply_filter, refuse_foreign_numbers,
};

use crate::{
    error::RunError,
    spec::{ProcessNetwork, ProcessWall},
};

/// Access to other processes and to the kernel itself.
const PRIVILEGED_CALLS: [i64; 39] = [
    libc::SYS_acct,
    libc::SYS_add_key,
    libc::SYS_adjtimex,
    libc::SYS_bpf,
    libc::SYS_chroot,
    libc::SYS_clock_adjtime,
    libc::SYS_clock_settime,
    libc::SYS_delete_module,
    libc::SYS_fanotify_init,
    libc::SYS_finit_module,
    libc::SYS_init_module,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_io_uring_setup,
    libc::SYS_kcmp,
    KEXEC_FILE_LOAD,
    libc::SYS_kexec_load,
    libc::SYS_keyctl,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    libc::SYS_open_by_handle_at,
    libc::SYS_perf_event_open,
    libc::SYS_pidfd_getfd,
    libc::SYS_process_madvise,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_ptrace,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_reboot,
    libc::SYS_request_key,
    libc::SYS_setdomainname,
    libc::SYS_sethostname,
    libc::SYS_settimeofday,
    libc::SYS_swapoff,
    libc::SYS_swapon,
    libc::SYS_syslog,
    libc::SYS_userfaultfd,
    libc::SYS_vhangup,
];

/// Changes of the mounts, which would bypass Landlock.
const MOUNT_CALLS: [i64; 13] = [
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fsopen,
    libc::SYS_fspick,
    libc::SYS_mount,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_pivot_root,
    libc::SYS_setns,
    libc::SYS_umount2,
    libc::SYS_unshare,
];

/// Calls that leave the process group, which is killed as a whole.
const PROCESS_GROUP_CALLS: [i64; 2] = [libc::SYS_setpgid, libc::SYS_setsid];

/// Mode, owner and attributes of files. Landlock does not check these, so they would work on every
/// file of the user.
const METADATA_CALLS: [i64; 14] = [
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    FCHMODAT2,
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_fremovexattr,
    libc::SYS_fsetxattr,
    libc::SYS_lremovexattr,
    libc::SYS_lsetxattr,
    libc::SYS_removexattr,
    libc::SYS_setxattr,
    SETXATTRAT,
    REMOVEXATTRAT,
    FILE_SETATTR,
];

/// Reports file names in any folder as they are used. Landlock does not check this either.
const FILE_WATCH_CALLS: [i64; 1] = [libc::SYS_inotify_add_watch];

/// Memory that belongs to no process, so it is not counted and may remain for ever.
const SHARED_MEMORY_CALLS: [i64; 6] = [
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
];

/// Sockets, which connect to other processes. Socket pairs need none of these.
const SOCKET_CALLS: [i64; 6] = [
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_bind,
    libc::SYS_connect,
    libc::SYS_listen,
    libc::SYS_socket,
];

/// Older variants of such calls, which only some architectures have.
#[cfg(target_arch = "x86_64")]
const LEGACY_CALLS: [i64; 8] = [
    libc::SYS_chmod,
    libc::SYS_chown,
    libc::SYS_futimesat,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_lchown,
    libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const LEGACY_CALLS: [i64; 0] = [];

// Numbers that the `libc` crate does not define for all architectures.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// The bits of a socket's type, without its flags.
const SOCKET_KIND: i32 = 0xf;

/// The values that mean "a process" for `setpriority` and `ioprio_set`.
const PRIORITY_OF_PROCESS: i32 = 0;
const IO_PRIORITY_OF_PROCESS: i32 = 1;

/// Calls that are denied depending on their arguments.
const ARGUMENT_RULES: [CallRule; 12] = [
    // A process in a new namespace could have every right there.
    (
        libc::SYS_clone,
        &[
            &[(0, has_bit(libc::CLONE_NEWCGROUP))],
            &[(0, has_bit(libc::CLONE_NEWIPC))],
            &[(0, has_bit(libc::CLONE_NEWNET))],
            &[(0, has_bit(libc::CLONE_NEWNS))],
            &[(0, has_bit(libc::CLONE_NEWPID))],
            &[(0, has_bit(libc::CLONE_NEWUSER))],
            &[(0, has_bit(libc::CLONE_NEWUTS))],
        ],
    ),
    // Reading the limits of another process is harmless; setting them is not.
    (libc::SYS_prlimit64, &[&[(0, IsNot(0)), (2, NotNull)]]),
    // With a path, it would reach every file, and a file that is open for reading could get any
    // time. Only setting an open file's times to now is allowed.
    (libc::SYS_utimensat, &[&[(1, NotNull)], &[(2, NotNull)]]),
    // Allowed are the requests for terminals and pipes, and those for sockets. The others belong to
    // file systems: through a file that is open for reading, they could change its metadata or
    // create other files.
    (
        libc::SYS_ioctl,
        &[&[(1, Below(0x5400))], &[(1, Above(0x54ff)), (1, Below(0x8900))], &[(1, Above(0x89ff))]],
    ),
    // A program that kills "its group" means the one that it tried to create, as `timeout` does.
    // Here that would be the whole program.
    (libc::SYS_kill, &[&[(0, Is(0)), (1, IsNot(0))]]),
    // Only the calling process may be changed.
    (libc::SYS_setpriority, &[&[(0, IsNot(PRIORITY_OF_PROCESS))], &[(1, IsNot(0))]]),
    (libc::SYS_ioprio_set, &[&[(0, IsNot(IO_PRIORITY_OF_PROCESS))], &[(1, IsNot(0))]]),
    (libc::SYS_sched_setaffinity, &[&[(0, IsNot(0))]]),
    (libc::SYS_sched_setattr, &[&[(0, IsNot(0))]]),
    (libc::SYS_sched_setparam, &[&[(0, IsNot(0))]]),
    (libc::SYS_sched_setscheduler, &[&[(0, IsNot(0))]]),
    // A datagram pair could send to any socket of the system.
    (
        libc::SYS_socketpair,
        &[
            &[(0, IsNot(AF_UNIX))],
            &[(1, Bits(SOCKET_KIND, SOCK_DGRAM))],
            &[(1, Bits(SOCKET_KIND, SOCK_RAW))],
        ],
    ),
];

/// The sockets that are denied with an open network. The C library asks the kernel for its addresses
/// over a netlink socket.
const LOCAL_SOCKETS: CallRule = (
    libc::SYS_socket,
    &[
        &[(0, IsNot(AF_INET)), (0, IsNot(AF_INET6)), (0, IsNot(AF_NETLINK))],
        &[(0, Is(AF_NETLINK)), (2, IsNot(NETLINK_ROUTE))],
    ],
);

/// Denies the calls to this process and all its descendants.
pub(super) fn apply_seccomp(network: ProcessNetwork) -> Result<(), RunError> {
    let always = [
        &PRIVILEGED_CALLS[..],
        &MOUNT_CALLS,
        &PROCESS_GROUP_CALLS,
        &METADATA_CALLS,
        &FILE_WATCH_CALLS,
        &SHARED_MEMORY_CALLS,
        &LEGACY_CALLS,
    ];
    let (sockets, local_sockets) = match network {
        ProcessNetwork::None => (&SOCKET_CALLS[..], None),
        ProcessNetwork::Open => (&[][..], Some(LOCAL_SOCKETS)),
    };
    let calls = always.into_iter().chain([sockets]).flatten();
    let denied: Vec<CallRule> =
        calls.map(|call| (*call, &[][..])).chain(ARGUMENT_RULES).chain(local_sockets).collect();
    // `clone3` fails as if the kernel did not know it, because the C library then uses the older
    // call, whose arguments a filter can check.
    let refuse = |rules: &[CallRule], errno: i32| {
        apply_filter(rules, Action::Errno(errno.cast_unsigned()), Action::Allow)
    };
    refuse(&denied, EPERM)
        .and_then(|()| refuse(&[(libc::SYS_clone3, &[])], ENOSYS))
        .and_then(|()| refuse_foreign_numbers())
        .map_err(|error| match error {
            Error::Backend(error) => RunError::Stage { message: error.to_string() },
            _ => RunError::NoWall { missing: vec![ProcessWall::Calls] },
        })
}

const fn has_bit(bit: i32) -> ArgumentTest {
    Bits(bit, bit)
}
