//! What plugins keep, plan and say, in memory: a test sees what came of each host call.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use sallyport_contract::{
    BoxFuture, CallContext, Owner, Services, ToolId,
    services::{
        Delivery, Expected, Kept, Notice, NoticeError, Notices, Opened, Opener, PackageError,
        PackageFile, Packages, Plan, Progress, StateError, StateStore, Timer, TimerError, Timers,
        Write,
    },
};

/// All of it.
#[derive(Default)]
pub(crate) struct Offers {
    kept: Mutex<BTreeMap<(Owner, String), Kept>>,
    timers: Mutex<Vec<Timer>>,
    /// The messages that came.
    pub(crate) notices: Mutex<Vec<Notice>>,
    /// When each of them is shown.
    pub(crate) deliveries: Mutex<Vec<Delivery>>,
    /// The reports of progress that came.
    pub(crate) progress: Mutex<Vec<Progress>>,
    /// The pages that were opened.
    pub(crate) pages: Mutex<Vec<String>>,
    /// Nothing works any more.
    pub(crate) broken: Mutex<bool>,
}

impl Offers {
    /// As a warden hands them out.
    pub(crate) fn services(self: &Arc<Self>) -> Services {
        Services {
            state: Some(Arc::clone(self) as _),
            timers: Some(Arc::clone(self) as _),
            notices: Some(Arc::clone(self) as _),
            opener: Some(Arc::clone(self) as _),
            packages: Some(Arc::clone(self) as _),
        }
    }

    /// Who keeps what, as `user key`.
    pub(crate) fn keys(&self) -> Vec<String> {
        let kept = self.kept.lock().unwrap();
        kept.keys().map(|(owner, key)| format!("{} {key}", owner.user)).collect()
    }

    fn is_broken(&self) -> bool {
        *self.broken.lock().unwrap()
    }
}

impl StateStore for Offers {
    fn get(&self, owner: &Owner, key: &str) -> Result<Option<Kept>, StateError> {
        if self.is_broken() {
            return Err(StateError::Unavailable("the disk is at /secret/place".to_owned()));
        }
        Ok(self.kept.lock().unwrap().get(&(owner.clone(), key.to_owned())).cloned())
    }

    fn set(&self, owner: &Owner, key: &str, write: Write<'_>) -> Result<u64, StateError> {
        let mut kept = self.kept.lock().unwrap();
        let place = (owner.clone(), key.to_owned());
        let present = kept.get(&place).map(|kept| kept.version);
        let fits = match write.expected {
            Expected::Anything => true,
            Expected::Nothing => present.is_none(),
            Expected::Version(version) => present == Some(version),
        };
        if !fits {
            return Err(StateError::Conflict { present });
        }
        let others = kept.iter().filter(|(other, _)| **other != place);
        let others: usize = others.map(|((_, key), kept)| key.len() + kept.value.len()).sum();
        let (needed, quota) = ((others + key.len() + write.value.len()) as u64, write.quota_bytes);
        if needed > quota {
            return Err(StateError::QuotaReached { needed, quota });
        }
        let version = present.unwrap_or(0) + 1;
        kept.insert(place, Kept { value: write.value.to_vec(), version });
        Ok(version)
    }

    fn delete(&self, owner: &Owner, key: &str) -> Result<bool, StateError> {
        let gone = self.kept.lock().unwrap().remove(&(owner.clone(), key.to_owned()));
        Ok(gone.is_some())
    }

    fn list(
        &self,
        owner: &Owner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateError> {
        let kept = self.kept.lock().unwrap();
        let own = kept.keys().filter(|(of, _)| of == owner).map(|(_, key)| key);
        let wanted = own.filter(|key| key.starts_with(prefix) && Some(key.as_str()) > after);
        Ok(wanted.take(limit).cloned().collect())
    }
}

impl Timers for Offers {
    fn add(&self, owner: &Owner, plan: Plan) -> Result<Timer, TimerError> {
        let mut timers = self.timers.lock().unwrap();
        if timers.len() >= plan.timers_max as usize {
            return Err(TimerError::TooMany { max: plan.timers_max });
        }
        if plan.interval_ms_min > 60_000 {
            return Err(TimerError::Invalid("too often".to_owned()));
        }
        let timer = Timer {
            id: format!("t{}", timers.len()),
            owner: owner.clone(),
            moment: plan.moment,
            next_ms: 7,
            label: plan.label,
            payload: plan.payload,
            session_id: plan.session_id,
        };
        timers.push(timer.clone());
        Ok(timer)
    }

    fn cancel(&self, owner: &Owner, id: &str) -> Result<bool, TimerError> {
        let mut timers = self.timers.lock().unwrap();
        let before = timers.len();
        timers.retain(|timer| timer.id != id || timer.owner != *owner);
        Ok(timers.len() < before)
    }

    fn list(&self, owner: &Owner) -> Result<Vec<Timer>, TimerError> {
        let timers = self.timers.lock().unwrap();
        Ok(timers.iter().filter(|timer| timer.owner == *owner).cloned().collect())
    }
}

impl Notices for Offers {
    fn notify(&self, notice: Notice, delivery: Delivery) -> Result<(), NoticeError> {
        if self.is_broken() {
            return Err(NoticeError::Unavailable("nobody is there".to_owned()));
        }
        self.notices.lock().unwrap().push(notice);
        self.deliveries.lock().unwrap().push(delivery);
        Ok(())
    }

    fn progress(&self, _: &CallContext, _: &ToolId, progress: Progress) {
        self.progress.lock().unwrap().push(progress);
    }
}

impl Opener for Offers {
    fn open(&self, url: &str) -> Opened {
        self.pages.lock().unwrap().push(url.to_owned());
        Opened::Browser
    }
}

impl Packages for Offers {
    fn releases<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<String>, PackageError>> {
        Box::pin(async move {
            if name == "nothing" {
                return Err(PackageError::NotFound("there is no nothing".to_owned()));
            }
            Ok(["2.0", "0.9.0", "0.8"].map(str::to_owned).to_vec())
        })
    }

    fn fetch<'a>(
        &'a self,
        name: &'a str,
        _version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageError>> {
        Box::pin(async move {
            if name == "nothing" {
                return Err(PackageError::NotFound("there is no nothing".to_owned()));
            }
            let file = |path: &str| PackageFile { path: path.to_owned(), data: vec![0; 10] };
            Ok([file("a.py"), file("b/c.py")].into())
        })
    }
}
