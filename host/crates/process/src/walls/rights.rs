//! Rights that a process was given, and descriptors that it was left with.

use std::io;

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

/// The first descriptor that is not one of the three that every program has.
const FIRST_FURTHER: libc::c_uint = 3;

/// The kernel's room for capabilities; those that it does not have are told by an error.
const CAPABILITIES: u32 = 64;

/// Gives up all rights beyond those of the user, for good.
pub(super) fn drop_all() -> io::Result<()> {
    // From here on, no program that is started can gain what this process has not.
    set_no_new_privs(true)?;
    (0..CAPABILITIES).try_for_each(unbound)?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, none)?)
}

/// Takes one capability out of those that a program could gain.
fn unbound(number: u32) -> io::Result<()> {
    match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
        // There is no such one; or it takes a right to give it up, and nobody without rights can
        // gain it anyway.
        Ok(()) | Err(Errno::INVAL | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Sees to it that no program gets a descriptor that this process was left with by who started it:
/// a file that is open already is behind no wall.
#[expect(unsafe_code, reason = "descriptors that nobody here owns have no other interface")]
pub(crate) fn close_inherited() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: it takes three numbers and touches no memory. Nothing is closed now, so no descriptor
    // that somebody here owns changes its meaning; they are closed where another program begins.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST_FURTHER, libc::c_uint::MAX, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
