//! seccomp: denies the system calls that bypass the other walls.
//!
//! The list contains denied calls, not allowed ones. Programs of every kind have to run, and their
//! calls differ with every version of their language. It denies calls that no tool needs, calls
//! that could leave the process group, and calls that change a file's metadata without opening it,
//! which Landlock does not cover. A denied call fails with `EPERM`; programs continue or report it.

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
    spec::{ProcessNetwork, ProcessWall},
};

/// The file that lists the actions of the kernel's filters, and the action that is required.
const ACTIONS: (&str, &str) = ("/proc/sys/kernel/seccomp/actions_avail", "errno");

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

/// Connections to other processes. Socket pairs need none of these.
const SOCKET_CALLS: [i64; 5] =
    [libc::SYS_accept, libc::SYS_accept4, libc::SYS_bind, libc::SYS_connect, libc::SYS_listen];

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
const OLD: [i64; 0] = [];

// Numbers that the `libc` crate does not define for all architectures.
const KEXEC_FILE_LOAD: i64 = if cfg!(target_arch = "x86_64") { 320 } else { 294 };
const FCHMODAT2: i64 = 452;
const SETXATTRAT: i64 = 463;
const REMOVEXATTRAT: i64 = 466;
const OPEN_TREE_ATTR: i64 = 467;
const FILE_SETATTR: i64 = 469;

/// Namespaces. A process in a new one could have every right there.
const NAMESPACES: [i32; 7] = [
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWUTS,
];

/// Allowed `ioctl` requests: those for terminals and pipes, and those for sockets. The others
/// belong to file systems: through a file that is open for reading, they could change its metadata
/// or create other files.
const ALLOWED_IOCTLS: [RangeInclusive<u64>; 2] = [0x5400..=0x54ff, 0x8900..=0x89ff];

/// Calls whose first argument is the process to change. They may change only the calling process.
const OWN_PROCESS_CALLS: [i64; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
];

/// The bits of a socket's type, without its flags.
const SOCKET_KIND: u64 = 0xf;

/// The values that mean "a process" for `setpriority` and `ioprio_set`.
const PRIORITY_OF_PROCESS: u64 = 0;
const IO_PRIORITY_OF_PROCESS: u64 = 1;

/// Whether the kernel has filters.
pub(super) fn is_supported() -> bool {
    fs::read_to_string(ACTIONS.0).is_ok_and(|actions| actions.contains(ACTIONS.1))
}

/// Denies the calls to this process and all its descendants.
pub(super) fn apply_seccomp(network: ProcessNetwork) -> Result<(), RunError> {
    let broken = |error: BackendError| RunError::Stage { message: error.to_string() };
    for filter in [
        denied_calls_filter(network).map_err(broken)?,
        unknown_calls_filter().map_err(broken)?,
        foreign_abi_filter(),
    ] {
        let missing = |_| RunError::NoWall { missing: vec![ProcessWall::Calls] };
        seccompiler::apply_filter_all_threads(&filter).map_err(missing)?;
    }
    Ok(())
}

/// Returns the filter of calls that fail with `EPERM`.
fn denied_calls_filter(network: ProcessNetwork) -> Result<BpfProgram, BackendError> {
    let always = [
        &PRIVILEGED_CALLS[..],
        &MOUNT_CALLS,
        &PROCESS_GROUP_CALLS,
        &METADATA_CALLS,
        &FILE_WATCH_CALLS,
        &SHARED_MEMORY_CALLS,
        &LEGACY_CALLS,
    ]
    .concat();
    let mut rules: BTreeMap<i64, Vec<Rule>> =
        always.into_iter().map(|call| (call, Vec::new())).collect();
    rules.extend(argument_rules()?);
    rules.extend(socket_rules(network)?);
    build_filter(rules, EPERM)
}

/// Returns the calls that are denied depending on their arguments.
fn argument_rules() -> Result<Vec<(i64, Vec<Rule>)>, BackendError> {
    let others = |call: &i64| Ok((*call, vec![Rule::new(vec![argument_differs(0, 0)?])?]));
    let mut rules =
        OWN_PROCESS_CALLS.iter().map(others).collect::<Result<Vec<_>, BackendError>>()?;
    let spaces = NAMESPACES.iter().map(|space| Rule::new(vec![argument_has_bit(0, *space)?]));
    rules.push((libc::SYS_clone, spaces.collect::<Result<_, _>>()?));
    // Reading the limits of another process is harmless; setting them is not.
    rules.push((
        libc::SYS_prlimit64,
        vec![Rule::new(vec![argument_differs(0, 0)?, argument_is_not_null(2)?])?],
    ));
    // With a path, they would reach every file, and a file that is open for reading could get any
    // time. Only setting an open file's times to now is allowed.
    let times = vec![
        Rule::new(vec![argument_is_not_null(1)?])?,
        Rule::new(vec![argument_is_not_null(2)?])?,
    ];
    rules.push((libc::SYS_utimensat, times));
    rules.push((libc::SYS_ioctl, ioctl_rules()?));
    // A program that kills "its group" means the one that it tried to create, as `timeout` does.
    // Here that would be the whole program.
    let own_group = Condition::new(0, Length::Dword, Is::Eq, 0)?;
    rules.push((libc::SYS_kill, vec![Rule::new(vec![own_group, argument_differs(1, 0)?])?]));
    rules.push((libc::SYS_setpriority, deny_other_targets(PRIORITY_OF_PROCESS)?));
    rules.push((libc::SYS_ioprio_set, deny_other_targets(IO_PRIORITY_OF_PROCESS)?));
    Ok(rules)
}

/// Denies every other kind of target, and every target of this kind except the process itself.
fn deny_other_targets(kind: u64) -> Result<Vec<Rule>, BackendError> {
    Ok(vec![
        Rule::new(vec![argument_differs(0, kind)?])?,
        Rule::new(vec![argument_differs(1, 0)?])?,
    ])
}

/// Denies the requests before, between and after the allowed ranges.
fn ioctl_rules() -> Result<Vec<Rule>, BackendError> {
    let ioctl_condition = |is: Is, number: &u64| Condition::new(1, Length::Dword, is, *number);
    let [first, second] = &ALLOWED_IOCTLS;
    Ok(vec![
        Rule::new(vec![ioctl_condition(Is::Lt, first.start())?])?,
        Rule::new(vec![
            ioctl_condition(Is::Gt, first.end())?,
            ioctl_condition(Is::Lt, second.start())?,
        ])?,
        Rule::new(vec![ioctl_condition(Is::Gt, second.end())?])?,
    ])
}

fn socket_rules(network: ProcessNetwork) -> Result<Vec<(i64, Vec<Rule>)>, BackendError> {
    let number = |value: i32| u64::from(value.cast_unsigned());
    let kind =
        |kind: i32| Condition::new(1, Length::Dword, Is::MaskedEq(SOCKET_KIND), number(kind));
    // A datagram pair could send to any socket of the system.
    let pairs = vec![
        Rule::new(vec![argument_differs(0, number(AF_UNIX))?])?,
        Rule::new(vec![kind(SOCK_DGRAM)?])?,
        Rule::new(vec![kind(SOCK_RAW)?])?,
    ];
    let mut rules = vec![(libc::SYS_socketpair, pairs)];
    match network {
        ProcessNetwork::None => {
            rules.push((libc::SYS_socket, Vec::new()));
            rules.extend(SOCKET_CALLS.map(|call| (call, Vec::new())));
        }
        // The C library asks the kernel for its addresses over a netlink socket.
        ProcessNetwork::Open => {
            let families =
                [AF_INET, AF_INET6, AF_NETLINK].map(|family| argument_differs(0, number(family)));
            let other = Rule::new(families.into_iter().collect::<Result<_, _>>()?)?;
            let is_netlink = Condition::new(0, Length::Dword, Is::Eq, number(AF_NETLINK))?;
            let not_routes =
                Rule::new(vec![is_netlink, argument_differs(2, number(NETLINK_ROUTE))?])?;
            rules.push((libc::SYS_socket, vec![other, not_routes]));
        }
    }
    Ok(rules)
}

/// Returns the filter of calls that fail as if the kernel did not know them. The C library then
/// uses the older call, whose arguments a filter can check.
fn unknown_calls_filter() -> Result<BpfProgram, BackendError> {
    build_filter([(libc::SYS_clone3, Vec::new())].into(), ENOSYS)
}

fn build_filter(rules: BTreeMap<i64, Vec<Rule>>, errno: i32) -> Result<BpfProgram, BackendError> {
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = Action::Errno(errno.cast_unsigned());
    // The filter begins with a check that kills callers that use another architecture.
    SeccompFilter::new(rules, Action::Allow, refuse, arch)?.try_into()
}

/// Returns the filter for the second set of numbers that a kernel may accept. The lists above do
/// not match those numbers, which all have this bit.
fn foreign_abi_filter() -> BpfProgram {
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

/// Matches an argument that differs from this number.
fn argument_differs(argument: u8, value: u64) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Dword, Is::Ne, value)
}

/// Matches an argument that is not a null pointer.
fn argument_is_not_null(argument: u8) -> Result<Condition, BackendError> {
    Condition::new(argument, Length::Qword, Is::Ne, 0)
}

/// Matches an argument that has this bit.
fn argument_has_bit(argument: u8, bit: i32) -> Result<Condition, BackendError> {
    let bit = u64::from(bit.cast_unsigned());
    Condition::new(argument, Length::Dword, Is::MaskedEq(bit), bit)
}
