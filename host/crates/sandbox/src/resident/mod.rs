//! Residents: the warm instances of a plugin, one for each session, kept from one call to the next.
//!
//! Each session has a room. Calls enter it one after another, wait for their turn as long as they
//! would wait for a place, and find whoever lives there, or move somebody in. An instance that trapped,
//! ran into a limit or was left in the middle of a call is in a state that nobody knows, so it goes,
//! and so does one that was idle for too long; the next call begins anew and says so in its report.

mod life;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use sallyport_contract::{Effect, Failure, FailureKind};
use tokio::{sync::OwnedMutexGuard, time::timeout};
use tokio_util::sync::CancellationToken;

use self::life::{Resident, Status};
use crate::{
    case::Case,
    grant::{OpenError, Opening},
    run::{Body, Run, Stop, Vessel},
};

/// What is known of a warm instance from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstanceInfo {
    /// The session that it belongs to.
    pub session_id: String,
    /// Memory that it held when its last call ended.
    pub memory_bytes: u64,
    /// How long it has not been called; nothing while a call runs.
    pub idle: Duration,
}

/// The warm instances of one plugin.
#[derive(Default)]
pub(crate) struct Residents(Mutex<HashMap<String, Arc<Room>>>);

/// The place of one session.
#[derive(Default)]
pub(crate) struct Room {
    turn: Arc<tokio::sync::Mutex<Tenancy>>,
    /// Of whoever lives there, for those who only look.
    status: Mutex<Option<Arc<Status>>>,
    /// The session has ended.
    over: CancellationToken,
}

/// Who lives in a room.
#[derive(Default)]
enum Tenancy {
    /// Nobody yet.
    #[default]
    New,
    /// An instance.
    Taken(Resident),
    /// Nobody any more.
    Left(Gone),
}

/// Why an instance is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gone {
    /// It broke, reached a limit, or its call was cancelled.
    Stopped,
    /// Nobody called it for too long.
    Idle,
    /// It was opened with something else than what is granted now.
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

    /// Ends what a session has: its instance, also in the middle of a call.
    pub(crate) fn end(&self, session_id: &str) {
        let room = lock(&self.0).remove(session_id);
        if let Some(room) = room {
            room.over.cancel();
        }
    }

    /// The instances that there are, by the names of their sessions.
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
    /// There was none in time, or the session has ended.
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
    /// Runs something in the instance of the session. `begin` makes one where there is none.
    ///
    /// # Errors
    ///
    /// What is granted to it cannot be opened.
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
        // Unless the call returns, whoever comes next finds nobody: also when it is dropped here.
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
    /// What the next call tells of it: whoever relies on what was kept has to know.
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
    Stop::Failed(Failure::new(FailureKind::Unavailable, "the session has ended"))
}

fn busy(waited: Duration) -> Stop {
    let message = format!(
        "the plugin is busy: another call runs in its instance of this session, and it did not end \
         within {waited:?} (limits.queue-time)"
    );
    Stop::Failed(Failure::new(FailureKind::LimitReached, message))
}

/// Each change of what is locked here is whole by itself, so a panic elsewhere leaves it sound.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
