//! seccomp: allows only the system calls that computing needs.
//!
//! The list names the allowed calls, so a call that a later kernel adds is refused too. A refused
//! call fails with `EPERM` instead of killing the process, because the C library tries calls that
//! it does not need, differently in every version, and works without them. An attacker gains
//! nothing from a call that fails.

use libc::{
    EPERM, MAP_ANONYMOUS, MAP_SHARED, PROT_EXEC, STDERR_FILENO, STDIN_FILENO, STDOUT_FILENO,
};
use sallyport_walls::seccomp::{
    ArgumentTest::{Bits, Is},
    CallRule, SeccompAction as Action, apply_filter,
};

use super::IsolationLayerStatus;

/// Calls that are allowed with any arguments: memory, waiting for the process's own threads, signal
/// handlers, time, and exit.
const ALLOWED_CALLS: [i64; 23] = [
    libc::SYS_brk,
    libc::SYS_clock_gettime,
    libc::SYS_clock_nanosleep,
    libc::SYS_close,
    libc::SYS_exit,
    libc::SYS_exit_group,
    libc::SYS_futex,
    libc::SYS_getpid,
    libc::SYS_getrandom,
    libc::SYS_gettid,
    libc::SYS_madvise,
    libc::SYS_mremap,
    libc::SYS_munmap,
    libc::SYS_nanosleep,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigaction,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigreturn,
    libc::SYS_sched_getaffinity,
    libc::SYS_sched_yield,
    libc::SYS_set_robust_list,
    libc::SYS_sigaltstack,
    libc::SYS_gettimeofday,
];

/// Calls that are allowed with certain arguments.
const ALLOWED_WITH_ARGUMENTS: [CallRule; 5] = [
    (libc::SYS_read, &[&[(0, Is(STDIN_FILENO))]]),
    (libc::SYS_write, &[&[(0, Is(STDOUT_FILENO))], &[(0, Is(STDERR_FILENO))]]),
    (libc::SYS_writev, &[&[(0, Is(STDOUT_FILENO))], &[(0, Is(STDERR_FILENO))]]),
    // Private anonymous memory only, and never executable, neither when mapped nor later.
    (
        libc::SYS_mmap,
        &[&[(2, Bits(PROT_EXEC, 0)), (3, Bits(MAP_ANONYMOUS | MAP_SHARED, MAP_ANONYMOUS))]],
    ),
    (libc::SYS_mprotect, &[&[(2, Bits(PROT_EXEC, 0))]]),
];

/// Restricts all threads of this process to the calls of the lists.
pub(super) fn apply_seccomp() -> IsolationLayerStatus {
    let mut rules: Vec<CallRule> = ALLOWED_CALLS.map(|call| (call, &[][..])).into();
    rules.extend(ALLOWED_WITH_ARGUMENTS);
    // Needed to abort. Only this process can be signalled.
    let own_process = [(0, Is(std::process::id().cast_signed()))];
    let own_process = [&own_process[..]];
    rules.push((libc::SYS_tgkill, &own_process));
    match apply_filter(&rules, Action::Allow, Action::Errno(EPERM.cast_unsigned())) {
        Ok(()) => IsolationLayerStatus::Active,
        Err(_) => IsolationLayerStatus::Missing,
    }
}
