//! Restrictions that a process puts on itself and cannot undo: resource limits, Landlock and seccomp.
//!
//! The crate has the mechanism. Which files, system calls and resources remain is data of the
//! caller, because the compiler of components and a native script need different ones.

#[cfg(target_os = "linux")]
pub mod landlock;
pub mod rlimit;
#[cfg(target_os = "linux")]
pub mod seccomp;
