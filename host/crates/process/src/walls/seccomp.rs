//! seccomp: the system's calls that reach past the other walls are taken away.
//!
//! The list says what is refused, not what is allowed: programs of every kind have to run, and what
//! they call differs with every version of their language. What it holds is what has no business in
//! a tool, what could lead out of the process group, and what changes a file's nature without
//! opening it, which Landlock does not see. A refused call fails with `EPERM`; programs go on or say
//! so.

use std::{collections::BTreeMap, fs, ops::RangeInclusive};

use libc::{
    AF_INET, AF_INET6, AF_NETLINK, AF_UNIX, ENOSYS, EPERM, NETLINK_ROUTE, SOCK_DGRAM, SOCK_RAW,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction as Action, SeccompCmpArgLen as Length,
    SeccompCmpOp as Is, SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
    sock_filter,
};

use crate::{
    error::RunError,
    spec::{Network, Wall},
};

/// Where the kernel says what its filters can do, and what is needed of that.
const ACTIONS: (&str, &str) = ("/proc/sys/kernel/seccomp/actions_avail", "errno");

/// Other processes, and the kernel itself.
const POWERS: [i64; 39] = [
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

/// Another view of the files than that which Landlock guards.
const MOUNTS: [i64; 13] = [
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

/// Ways out of the group that is ended as a whole.
const GROUP: [i64; 2] = [libc::SYS_setpgid, libc::SYS_setsid];

/// Mode, owner and attributes of files. Landlock does not ask for these, so they would reach every
/// file of the user.
const NATURE: [i64; 14] = [
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

/// Tells of any folder the names of its files, as they are used: Landlock does not ask here either.
const SPYING: [i64; 1] = [libc::SYS_inotify_add_watch];

/// Memory that belongs to no process, so that nobody would count it, and that may stay for good.
const MEMORY: [i64; 6] = [
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_mq_open,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_shmget,
];

/// Sockets of somebody else: pairs need none of these.
const SOCKETS: [i64; 5] =
    [libc::SYS_accept, libc::SYS_accept4, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen];

/// Calls of this kind that only the oldest of the systems have.
#[cfg(target_arch = "x86_64")]
const OLD: [i64; 8] = [
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
const OLD: [i64; 0] = [];

// Numbers that the C library's list does not have for all systems.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// The spaces of names that a process could be started in. There it would have every right.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// What can be asked of an open file: what is asked of terminals and pipes, and of sockets. All else
/// is a file system's own: it changes what a file is, or makes other files, through one that is open
/// for reading.
const QUESTIONS: [RangeInclusive<u64>; 2] = [0x5400..=0x54ff, 0x8900..=0x89ff];

/// Calls that take the process to change first. Of others of the same user none is changed.
const OF_A_PROCESS: [i64; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The kind of a socket, without the flags beside it.
const SOCKET_KIND: u64 = 0xf;

/// What says "a process" to `setpriority` and `ioprio_set`.
const PRIORITY_OF_PROCESS: u64 = 0;
const IO_PRIORITY_OF_PROCESS: u64 = 1;

/// Whether the kernel has filters.
pub(super) fn is_there() -> bool {
    fs::read_to_string(ACTIONS.0).is_ok_and(|actions| actions.contains(ACTIONS.1))
}

/// Takes the calls away from this process and all that it starts.
pub(super) fn raise(network: Network) -> Result<(), RunError> {
    let broken = |error: BackendError| RunError::Stage { message: error.to_string() };
    for filter in [refused(network).map_err(broken)?, absent().map_err(broken)?, other_numbers()] {
        let missing = |_| RunError::NoWall { missing: vec![Wall::Calls] };
        seccompiler::apply_filter_all_threads(&filter).map_err(missing)?;
    }
    Ok(())
}

/// The calls that fail for want of a right.
fn refused(network: Network) -> Result<BpfProgram, BackendError> {
    let always = [&POWERS[..], &MOUNTS, &GROUP, &NATURE, &SPYING, &MEMORY, &OLD].concat();
    let mut rules: BTreeMap<i64, Vec<Rule>> =
        always.into_iter().map(|call| (call, Vec::new())).collect();
    rules.extend(of_arguments()?);
    rules.extend(sockets(network)?);
    filter(rules, EPERM)
}

/// The calls that fail by their arguments.
fn of_arguments() -> Result<Vec<(i64, Vec<Rule>)>, BackendError> {
    let others = |call: &i64| Ok((*call, vec![Rule::new(vec![not(0, 0)?])?]));
    let mut rules = OF_A_PROCESS.iter().map(others).collect::<Result<Vec<_>, BackendError>>()?;
    let spaces = NAMESPACES.iter().map(|space| Rule::new(vec![has(0, *space)?]));
    rules.push((libc::SYS_clone, spaces.collect::<Result<_, _>>()?));
    // To ask for the limits of another process is harmless; to set them is not.
    rules.push((libc::SYS_prlimit64, vec![Rule::new(vec![not(0, 0)?, is_given(2)?])?]));
    // By name they would reach every file, and those of a file that is open for reading could be
    // made up; that a file is new can be said of one that is open.
    let times = vec![Rule::new(vec![is_given(1)?])?, Rule::new(vec![is_given(2)?])?];
    rules.push((libc::SYS_utimensat, times));
    rules.push((libc::SYS_ioctl, questions()?));
    // Whoever ends "its group" means the one that it wanted to make, as `timeout` does; here that is
    // the whole program.
    let own_group = Condition::new(0, Length::Dword, Is::Eq, 0)?;
    rules.push((libc::SYS_kill, vec![Rule::new(vec![own_group, not(1, 0)?])?]));
    rules.push((libc::SYS_setpriority, all_but(PRIORITY_OF_PROCESS)?));
    rules.push((libc::SYS_ioprio_set, all_but(IO_PRIORITY_OF_PROCESS)?));
    Ok(rules)
}

/// Refuses all but this kind of target, and of that all but the process itself.
fn all_but(kind: u64) -> Result<Vec<Rule>, BackendError> {
    Ok(vec![Rule::new(vec![not(0, kind)?])?, Rule::new(vec![not(1, 0)?])?])
}

/// Refuses what lies before, between and behind the questions that can be asked.
fn questions() -> Result<Vec<Rule>, BackendError> {
    let asked = |is: Is, number: &u64| Condition::new(1, Length::Dword, is, *number);
    let [first, second] = &QUESTIONS;
    Ok(vec![
        Rule::new(vec![asked(Is::Lt, first.start())?])?,
        Rule::new(vec![asked(Is::Gt, first.end())?, asked(Is::Lt, second.start())?])?,
        Rule::new(vec![asked(Is::Gt, second.end())?])?,
    ])
}

fn sockets(network: Network) -> Result<Vec<(i64, Vec<Rule>)>, BackendError> {
    let number = |value: i32| u64::from(value.cast_unsigned());
    let kind =
        |kind: i32| Condition::new(1, Length::Dword, Is::MaskedEq(SOCKET_KIND), number(kind));
    // A pair that takes single messages could send them to any socket of the system.
    let pairs = vec![
        Rule::new(vec![not(0, number(AF_UNIX))?])?,
        Rule::new(vec![kind(SOCK_DGRAM)?])?,
        Rule::new(vec![kind(SOCK_RAW)?])?,
    ];
    let mut rules = vec![(libc::SYS_socketpair, pairs)];
    match network {
        Network::None => {
            rules.push((libc::SYS_socket, Vec::new()));
            rules.extend(SOCKETS.map(|call| (call, Vec::new())));
        }
        // The C library asks the kernel for its addresses, by a socket of its own kind.
        Network::Open => {
            let families = [AF_INET, AF_INET6, AF_NETLINK].map(|family| not(0, number(family)));
            let other = Rule::new(families.into_iter().collect::<Result<_, _>>()?)?;
            let is_netlink = Condition::new(0, Length::Dword, Is::Eq, number(AF_NETLINK))?;
            let not_routes = Rule::new(vec![is_netlink, not(2, number(NETLINK_ROUTE))?])?;
            rules.push((libc::SYS_socket, vec![other, not_routes]));
        }
    }
    Ok(rules)
}

/// Calls that fail as if the kernel had not heard of them: the C library then takes the older one,
/// whose arguments a filter can see.
fn absent() -> Result<BpfProgram, BackendError> {
    filter([(libc::SYS_clone3, Vec::new())].into(), ENOSYS)
}

fn filter(rules: BTreeMap<i64, Vec<Rule>>, errno: i32) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = Action::Errno(errno.cast_unsigned());
    // Whoever calls in the manner of another architecture is ended by what comes first in a filter.
    SeccompFilter::new(rules, Action::Allow, refuse, arch)?.try_into()
}

/// A kernel may take calls by a second set of numbers, which no list above would match: all of them
/// have this bit.
fn other_numbers() -> BpfProgram {
    const OTHER_BIT: u32 = 0x4000_0000;
    let load_number = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let is_at_least = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let done = (libc::BPF_RET | libc::BPF_K) as u16;
    let refuse = libc::SECCOMP_RET_ERRNO | ENOSYS.cast_unsigned();
    vec![
        sock_filter { code: load_number, jt: 0, jf: 0, k: 0 },
        sock_filter { code: is_at_least, jt: 0, jf: 1, k: OTHER_BIT },
        sock_filter { code: done, jt: 0, jf: 0, k: refuse },
        sock_filter { code: done, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ]
}

/// An argument that is another number than this.
fn not(argument: u8, value: u64) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Dword, Is::Ne, value)
}

/// An argument that is the address of something.
fn is_given(argument: u8) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Qword, Is::Ne, 0)
}

/// An argument that has this bit.
fn has(argument: u8, bit: i32) -> Result<Condition, BackendError> {
    let bit = u64::from(bit.cast_unsigned());
    Condition::new(argument, Length::Dword, Is::MaskedEq(bit), bit)
}
