//! Residents: the warm instances of a plugin, one per session, kept from one call to the next.
//!
//! Each session has a room. Calls enter it one after another and wait for their turn as long as for
//! a place; the first one creates the instance. An instance that trapped, reached a limit or was
//! abandoned in the middle of a call is in an unknown state, so it is removed, and so is one that
//! was idle for too long. The next call starts a new instance and notes that in its report.

mod life;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sallyport_contract::{CallFailure, Effect, FailureKind};
use tokio::{sync::OwnedMutexGuard, time::timeout};
use tokio_util::sync::CancellationToken;

use self::life::{Resident, Status};
use crate::{
    case::Case,
    grant::{OpenError, Opening},
    run::{Body, Run, Stop, Vessel},
};

/// The state of a warm instance as seen from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The session that it belongs to.
    pub session_id: String,
    /// Its memory at the end of its last call, in bytes.
    pub memory_bytes: u64,
    /// How long it has been idle. Zero while a call runs.
    pub idle: Duration,
}

/// The warm instances of one plugin.
#[derive(Default)]
pub(crate) struct Residents(Mutex<HashMap<String, Arc<Room>>>);

/// The room of one session.
#[derive(Default)]
pub(crate) struct Room {
    turn: Arc<tokio::sync::Mutex<Tenancy>>,
    /// The status of the instance, readable without a turn.
    status: Mutex<Option<Arc<Status>>>,
    /// Cancelled when the session ends.
    over: CancellationToken,
}

/// The occupancy of a room.
#[derive(Default)]
enum Tenancy {
    /// No instance has been created yet.
    #[default]
    New,
    /// A live instance.
    Taken(Resident),
    /// The last instance is gone.
    Left(Gone),
}

/// The reason why an instance is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// It failed, reached a limit, or its call was cancelled.
    Stopped,
    /// It was idle for too long.
    Idle,
    /// It was opened with a different grant than the current one.
    Regranted,
}

/// One call's turn in a room.
pub(crate) struct Visit {
    room: Arc<Room>,
    tenancy: OwnedMutexGuard<Tenancy>,
}

impl Residents {
    /// The room of a session.
    pub(crate) fn room(&self, session_id: &str) -> Arc<Room> {
        let mut rooms = lock(&self.0);
        if let Some(room) = rooms.get(session_id) {
            return Arc::clone(room);
        }
        Arc::clone(rooms.entry(session_id.to_owned()).or_default())
    }

    /// Ends a session: stops its instance, even in the middle of a call.
    pub(crate) fn end(&self, session_id: &str) {
        let room = lock(&self.0).remove(session_id);
        if let Some(room) = room {
            room.over.cancel();
        }
    }

    /// The live instances, sorted by session ID.
    pub(crate) fn infos(&self) -> Vec<InstanceInfo> {
        let rooms = lock(&self.0);
        let infos = rooms.iter().filter_map(|(session_id, room)| {
            let (memory_bytes, idle) = lock(&room.status).as_ref()?.figures()?;
            Some(InstanceInfo { session_id: session_id.clone(), memory_bytes, idle })
        });
        let mut infos: Vec<InstanceInfo> = infos.collect();
        infos.sort_by(|one, other| one.session_id.cmp(&other.session_id));
        infos
    }
}

impl Room {
    /// Waits for a turn.
    ///
    /// # Errors
    ///
    /// The turn did not come in time, or the session has ended.
    pub(crate) async fn enter(self: Arc<Self>, patience: Duration) -> Result<Visit, Stop> {
        let turn = timeout(patience, Arc::clone(&self.turn).lock_owned());
        tokio::select! {
            biased;
            () = self.over.cancelled() => Err(ended()),
            turn = turn => match turn {
                Ok(tenancy) => Ok(Visit { room: Arc::clone(&self), tenancy }),
                Err(_) => Err(busy(patience)),
            },
        }
    }
}

impl Visit {
    /// Runs something in the session's instance. `begin` creates the instance if there is none.
    ///
    /// # Errors
    ///
    /// A granted folder or file cannot be opened.
    pub(crate) async fn run<R: Send + 'static>(
        mut self,
        case: &Arc<Case>,
        body: Body<R>,
        begin: impl FnOnce() -> Result<Vessel, OpenError>,
    ) -> Result<Run<R>, OpenError> {
        if self.room.over.is_cancelled() {
            return Ok(Run { result: Err(ended()), memory_bytes_peak: 0 });
        }
        let opening = Opening::of(case);
        let mut resident = match self.greet(&opening) {
            Some(resident) => resident,
            None => self.move_in(case, opening, begin)?,
        };
        // Unless the call returns, the next caller must find no instance, even if this future is
        // dropped.
        *self.tenancy = Tenancy::Left(Gone::Stopped);
        let run = tokio::select! {
            biased;
            () = self.room.over.cancelled() => Run { result: Err(ended()), memory_bytes_peak: 0 },
            run = resident.run(case, body) => run,
        };
        if run.result.is_ok() {
            *self.tenancy = Tenancy::Taken(resident);
        }
        Ok(run)
    }

    /// Takes the instance out of the room, if there is one that can be called.
    fn greet(&mut self, opening: &Opening) -> Option<Resident> {
        let gone = match std::mem::take(&mut *self.tenancy) {
            Tenancy::New => return None,
            Tenancy::Taken(resident) if !resident.claim() => Gone::Idle,
            Tenancy::Taken(resident) if resident.is_open_with(opening) => return Some(resident),
            Tenancy::Taken(_) => Gone::Regranted,
            Tenancy::Left(gone) => gone,
        };
        *self.tenancy = Tenancy::Left(gone);
        None
    }

    fn move_in(
        &mut self,
        case: &Case,
        opening: Opening,
        begin: impl FnOnce() -> Result<Vessel, OpenError>,
    ) -> Result<Resident, OpenError> {
        let resident = Resident::begin(begin()?, opening);
        if let Tenancy::Left(gone) = &*self.tenancy {
            case.ledger.note(gone.effect());
        }
        *lock(&self.room.status) = Some(Arc::clone(resident.status()));
        Ok(resident)
    }
}

impl Gone {
    /// The note in the report of the next call, because a caller that relies on stored state has to
    /// know.
    fn effect(self) -> Effect {
        let why = match self {
            Self::Stopped => "the last one was stopped",
            Self::Idle => "the last one was idle for too long",
            Self::Regranted => "other things are granted to it than to the last one",
        };
        Effect::Used { capability: "instance".to_owned(), what: format!("begun anew: {why}") }
    }
}

fn ended() -> Stop {
    Stop::Failed(CallFailure::new(FailureKind::Unavailable, "the session has ended"))
}

fn busy(waited: Duration) -> Stop {
    let message = format!(
        "the plugin is busy: another call runs in its instance of this session, and it did not end \
         within {waited:?} (limits.queue-time)"
    );
    Stop::Failed(CallFailure::new(FailureKind::LimitReached, message))
}

/// Locks a mutex. Every change under these locks is complete by itself, so a poisoned lock is safe
/// to use.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
