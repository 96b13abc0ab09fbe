//! Descriptors: each connection takes one, and so does much else in the program.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Descriptors that connections leave to the rest of the program: the store, and the files, requests
/// and programs of calls.
const OTHER_DESCRIPTORS: u64 = 512;

/// The limit that servers ask for. Shells give programs 1,024 by default, and allow more.
const DESCRIPTORS_WANTED: u64 = 8192;

/// Raises this process's limit of open descriptors, as far as the system allows. Programs that it
/// starts inherit the limit.
pub fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(DESCRIPTORS_WANTED, |maximum| maximum.min(DESCRIPTORS_WANTED));
    if current.is_some_and(|current| current < wanted) {
        // If the system refuses, there is room for fewer connections.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// The connections for which there are descriptors.
pub(crate) fn room_for_connections() -> usize {
    room_below(getrlimit(Resource::Nofile).current)
}

/// The connections that fit below a limit: a quarter of a limit that is too low for the rest.
fn room_below(limit: Option<u64>) -> usize {
    let room = limit.map(|limit| limit.saturating_sub(OTHER_DESCRIPTORS).max(limit / 4));
    room.map_or(usize::MAX, |room| usize::try_from(room).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_to_the_rest() {
        let rows = [
            (None, usize::MAX),
            (Some(64), 16),
            (Some(256), 64),
            (Some(1024), 512),
            (Some(8192), 7680),
        ];
        for (limit, room) in rows {
            assert_eq!(room_below(limit), room, "{limit:?}");
        }
    }
}
