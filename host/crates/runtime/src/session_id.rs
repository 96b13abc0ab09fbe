//! New ids: of sessions, and of what is told apart like them, such as connections and tasks.

use crate::clock::now_ms;

/// Returns a new, unique session id. Approvals for one session must not apply to another.
pub fn new_session_id() -> String {
    let mut random = [0; 8];
    // It fails only on a kernel that does not know the flag. The time alone then distinguishes the
    // sessions of one user.
    let _ = rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty());
    format!("{:x}-{:016x}", now_ms(), u64::from_ne_bytes(random))
}
