//! Drops inherited capabilities and descriptors.

use std::io;

use rustix::{
    io::Errno,
    thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set,
        remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
    },
};

/// The first descriptor after the three standard ones.
const FIRST_FURTHER: libc::c_uint = 3;

/// The number of capabilities that the kernel's sets can represent. It rejects unknown ones with an
/// error.
const CAPABILITIES: u32 = 64;

/// Drops all rights beyond those of the user, permanently.
pub(super) fn drop_capabilities() -> io::Result<()> {
    // From here on, a started program cannot gain rights that this process lacks.
    set_no_new_privs(true)?;
    (0..CAPABILITIES).try_for_each(drop_bounding_capability)?;
    clear_ambient_capability_set()?;
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    Ok(set_capabilities(None, none)?)
}

/// Removes one capability from the bounding set.
fn drop_bounding_capability(number: u32) -> io::Result<()> {
    match remove_capability_from_bounding_set(CapabilitySet::from_bits_retain(1 << number)) {
        // The capability does not exist, or this process lacks the right to remove it. Without that
        // right, it cannot gain the capability either.
        Ok(()) | Err(Errno::INVAL | Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Marks all inherited descriptors close-on-exec, because the walls do not restrict files that are
/// already open.
#[expect(unsafe_code, reason = "descriptors that nobody here owns have no other interface")]
pub(crate) fn close_inherited_descriptors() -> io::Result<()> {
    let flags = libc::CLOSE_RANGE_CLOEXEC;
    // SAFETY: the call takes three numbers and touches no memory. It closes nothing now, so no
    // owned descriptor changes its meaning; they are closed when another program is executed.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, FIRST_FURTHER, libc::c_uint::MAX, flags) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
