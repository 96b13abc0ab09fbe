//! seccomp: filters of system calls, from tables of calls and arguments.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs,
};

use libc::ENOSYS;
use seccompiler::{
    BackendError, BpfProgram, SeccompCmpArgLen as Length, SeccompCmpOp as Is, SeccompCondition,
    SeccompFilter, SeccompRule, sock_filter,
};
pub use seccompiler::{Error, SeccompAction};

/// The file that lists the actions of the kernel's filters, and the action that is required.
const ACTIONS: (&str, &str) = ("/proc/sys/kernel/seccomp/actions_avail", "errno");

/// The number of a system call, and the cases in which the rule applies to it. Without cases, it
/// applies with any arguments.
pub type CallRule<'a> = (i64, &'a [CallCase<'a>]);

/// The tests of arguments, by their position, which all have to hold.
pub type CallCase<'a> = &'a [(u8, ArgumentTest)];

/// A test of one argument. All but the last compare the lower 32 bits, without a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentTest {
    /// It is this value.
    Is(i32),
    /// It is another value.
    IsNot(i32),
    /// It is less than this value.
    Below(i32),
    /// It is more than this value.
    Above(i32),
    /// The bits of a mask, which comes first, have this value.
    Bits(i32, i32),
    /// It is not a null pointer.
    NotNull,
}

/// Whether the kernel has filters.
pub fn is_supported() -> bool {
    fs::read_to_string(ACTIONS.0).is_ok_and(|actions| actions.contains(ACTIONS.1))
}

/// Applies one action to the calls to which a rule applies, and another one to all others, for all
/// threads of this process and its descendants.
///
/// # Errors
///
/// A rule is invalid ([`Error::Backend`]), or the kernel does not accept the filter.
pub fn apply_filter(
    rules: &[CallRule<'_>],
    listed: SeccompAction,
    others: SeccompAction,
) -> Result<(), Error> {
    let rules = collect_rules(rules)?;
    // The filter begins with a check that kills callers that use another architecture.
    let arch = std::env::consts::ARCH.try_into()?;
    let filter: BpfProgram = SeccompFilter::new(rules, others, listed, arch)?.try_into()?;
    seccompiler::apply_filter_all_threads(&filter)
}

/// The rules by call. Two rules for one call apply in the cases of both.
fn collect_rules(rules: &[CallRule<'_>]) -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let mut by_call = BTreeMap::new();
    for (call, cases) in rules {
        let rule = |case: &CallCase<'_>| {
            SeccompRule::new(case.iter().map(to_condition).collect::<Result<_, _>>()?)
        };
        let mut cases: Vec<_> = cases.iter().map(rule).collect::<Result<_, _>>()?;
        match by_call.entry(*call) {
            Entry::Vacant(entry) => {
                entry.insert(cases);
            }
            Entry::Occupied(mut entry) if entry.get().is_empty() || cases.is_empty() => {
                // One of them applies with any arguments.
                entry.get_mut().clear();
            }
            Entry::Occupied(mut entry) => entry.get_mut().append(&mut cases),
        }
    }
    Ok(by_call)
}

/// Lets calls of the second set of numbers fail that a kernel may accept. Rules do not match those
/// numbers, which all have this bit.
///
/// # Errors
///
/// The kernel does not accept the filter.
pub fn refuse_foreign_numbers() -> Result<(), Error> {
    const OTHER_BIT: u32 = 0x4000_0000;
    let load_number = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let is_at_least = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
    let done = (libc::BPF_RET | libc::BPF_K) as u16;
    let refuse = libc::SECCOMP_RET_ERRNO | ENOSYS.cast_unsigned();
    seccompiler::apply_filter_all_threads(&[
        sock_filter { code: load_number, jt: 0, jf: 0, k: 0 },
        sock_filter { code: is_at_least, jt: 0, jf: 1, k: OTHER_BIT },
        sock_filter { code: done, jt: 0, jf: 0, k: refuse },
        sock_filter { code: done, jt: 0, jf: 0, k: libc::SECCOMP_RET_ALLOW },
    ])
}

fn to_condition((argument, test): &(u8, ArgumentTest)) -> Result<SeccompCondition, BackendError> {
    let (operator, value) = match *test {
        ArgumentTest::Is(value) => (Is::Eq, value),
        ArgumentTest::IsNot(value) => (Is::Ne, value),
        ArgumentTest::Below(value) => (Is::Lt, value),
        ArgumentTest::Above(value) => (Is::Gt, value),
        ArgumentTest::Bits(mask, value) => (Is::MaskedEq(mask.cast_unsigned().into()), value),
        ArgumentTest::NotNull => {
            return SeccompCondition::new(*argument, Length::Qword, Is::Ne, 0);
        }
    };
    SeccompCondition::new(*argument, Length::Dword, operator, value.cast_unsigned().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_rules_for_one_call_both_apply() {
        let case: &[CallCase<'_>] = &[&[(0, ArgumentTest::Is(1))]];
        let other: &[CallCase<'_>] = &[&[(0, ArgumentTest::Is(2))]];
        for (first, second, cases) in [(case, other, 2), (case, &[], 0), (&[], case, 0)] {
            let rules = collect_rules(&[(1, first), (2, case), (1, second)]).unwrap();
            assert_eq!((rules[&1].len(), rules[&2].len()), (cases, 1));
        }
    }
}
