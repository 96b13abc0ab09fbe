//! seccomp: allows only the system calls that computing needs.
//!
//! The list names the allowed calls, so a call that a later kernel adds is refused too. A refused
//! call fails with `EPERM` instead of killing the process, because the C library tries calls that
//! it does not need, differently in every version, and works without them. An attacker gains
//! nothing from a call that fails.

use std::collections::BTreeMap;

use libc::{
    EPERM, MAP_ANONYMOUS, MAP_SHARED, PROT_EXEC, STDERR_FILENO, STDIN_FILENO, STDOUT_FILENO,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen as Length, SeccompCmpOp as Is,
    SeccompCondition as Condition, SeccompFilter, SeccompRule as Rule,
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

/// Restricts all threads of this process to the calls of the list.
pub(super) fn apply_seccomp() -> IsolationLayerStatus {
    let raised =
        build_filter().is_ok_and(|filter| seccompiler::apply_filter_all_threads(&filter).is_ok());
    if raised { IsolationLayerStatus::Active } else { IsolationLayerStatus::Missing }
}

fn build_filter() -> Result<BpfProgram, BackendError> {
    let mut rules: BTreeMap<i64, Vec<Rule>> = ALLOWED_CALLS.map(|call| (call, Vec::new())).into();
    rules.extend([
        (libc::SYS_read, vec![require_argument_value(0, STDIN_FILENO)?]),
        (
            libc::SYS_write,
            vec![
                require_argument_value(0, STDOUT_FILENO)?,
                require_argument_value(0, STDERR_FILENO)?,
            ],
        ),
        (
            libc::SYS_writev,
            vec![
                require_argument_value(0, STDOUT_FILENO)?,
                require_argument_value(0, STDERR_FILENO)?,
            ],
        ),
        // Private anonymous memory only, and never executable, neither when mapped nor later.
        (
            libc::SYS_mmap,
            vec![Rule::new(vec![
                match_argument_bits(2, PROT_EXEC, 0)?,
                match_argument_bits(3, MAP_ANONYMOUS | MAP_SHARED, MAP_ANONYMOUS)?,
            ])?],
        ),
        (libc::SYS_mprotect, vec![Rule::new(vec![match_argument_bits(2, PROT_EXEC, 0)?])?]),
        // Needed to abort. Only this process can be signalled.
        (libc::SYS_tgkill, vec![require_argument_value(0, std::process::id().cast_signed())?]),
    ]);
    let arch = std::env::consts::ARCH.try_into()?;
    let refuse = SeccompAction::Errno(EPERM.cast_unsigned());
    SeccompFilter::new(rules, refuse, SeccompAction::Allow, arch)?.try_into()
}

/// Allows a call if the argument has this value.
fn require_argument_value(argument: u8, value: i32) -> Result<Rule, BackendError> {
    let value = u64::from(value.cast_unsigned());
    Rule::new(vec![Condition::new(argument, Length::Dword, Is::Eq, value)?])
}

/// A condition on some bits of an argument.
fn match_argument_bits(argument: u8, mask: i32, value: i32) -> Result<Condition, BackendError> {
    let [mask, value] = [mask, value].map(|bits| u64::from(bits.cast_unsigned()));
    Condition::new(argument, Length::Dword, Is::MaskedEq(mask), value)
}
