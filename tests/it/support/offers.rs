//! What plugins keep, plan and say, in memory: a test sees what came of each host call.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use sallyport_contract::{
    BoxFuture, DataOwner, Services, ToolCallContext, ToolId, async_trait,
    services::{
        CallProgress, DeliveryTime, NoticeError, NoticeService, PackageFetchError, PackageFile,
        PackageService, PluginNotice, StateStore, StateStoreError, StateWrite, StoredTimer,
        StoredValue, TimerError, TimerRequest, TimerStore, UrlOpenResult, UrlOpener,
        WriteCondition,
    },
};

/// All of it.
#[derive(Default)]
pub(crate) struct Offers {
    kept: Mutex<BTreeMap<(DataOwner, String), StoredValue>>,
    timers: Mutex<Vec<StoredTimer>>,
    /// The messages that came.
    pub(crate) notices: Mutex<Vec<PluginNotice>>,
    /// When each of them is shown.
    pub(crate) deliveries: Mutex<Vec<DeliveryTime>>,
    /// The reports of progress that came.
    pub(crate) progress: Mutex<Vec<CallProgress>>,
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
            url_opener: Some(Arc::clone(self) as _),
            packages: Some(Arc::clone(self) as _),
            file_copies: None,
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

#[async_trait]
impl StateStore for Offers {
    async fn get(
        &self,
        owner: &DataOwner,
        key: &str,
    ) -> Result<Option<StoredValue>, StateStoreError> {
        if self.is_broken() {
            return Err(StateStoreError::Unavailable("the disk is at /secret/place".to_owned()));
        }
        Ok(self.kept.lock().unwrap().get(&(owner.clone(), key.to_owned())).cloned())
    }

    async fn set(
        &self,
        owner: &DataOwner,
        key: &str,
        write: StateWrite,
    ) -> Result<u64, StateStoreError> {
        let mut kept = self.kept.lock().unwrap();
        let place = (owner.clone(), key.to_owned());
        let present = kept.get(&place).map(|kept| kept.version);
        let fits = match write.expected {
            WriteCondition::Anything => true,
            WriteCondition::Nothing => present.is_none(),
            WriteCondition::Version(version) => present == Some(version),
        };
        if !fits {
            return Err(StateStoreError::Conflict { current_version: present });
        }
        let others = kept.iter().filter(|(other, _)| **other != place);
        let others: usize = others.map(|((_, key), kept)| key.len() + kept.value.len()).sum();
        let (needed, quota) = ((others + key.len() + write.value.len()) as u64, write.quota_bytes);
        if needed > quota {
            return Err(StateStoreError::QuotaReached { needed, quota });
        }
        let version = present.unwrap_or(0) + 1;
        kept.insert(place, StoredValue { value: write.value, version });
        Ok(version)
    }

    async fn delete(&self, owner: &DataOwner, key: &str) -> Result<bool, StateStoreError> {
        let gone = self.kept.lock().unwrap().remove(&(owner.clone(), key.to_owned()));
        Ok(gone.is_some())
    }

    async fn list_keys(
        &self,
        owner: &DataOwner,
        prefix: &str,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<String>, StateStoreError> {
        let kept = self.kept.lock().unwrap();
        let own = kept.keys().filter(|(of, _)| of == owner).map(|(_, key)| key);
        let wanted = own.filter(|key| key.starts_with(prefix) && Some(key.as_str()) > after);
        Ok(wanted.take(limit).cloned().collect())
    }
}

#[async_trait]
impl TimerStore for Offers {
    async fn add_timer(
        &self,
        owner: &DataOwner,
        plan: TimerRequest,
    ) -> Result<StoredTimer, TimerError> {
        let mut timers = self.timers.lock().unwrap();
        if timers.len() >= plan.timers_max as usize {
            return Err(TimerError::TooMany { max: plan.timers_max });
        }
        if plan.interval_ms_min > 60_000 {
            return Err(TimerError::Invalid("too often".to_owned()));
        }
        let timer = StoredTimer {
            id: format!("t{}", timers.len()),
            owner: owner.clone(),
            schedule: plan.schedule,
            next_ms: 7,
            label: plan.label,
            payload: plan.payload,
            session_id: plan.session_id,
        };
        timers.push(timer.clone());
        Ok(timer)
    }

    async fn cancel_timer(&self, owner: &DataOwner, id: &str) -> Result<bool, TimerError> {
        let mut timers = self.timers.lock().unwrap();
        let before = timers.len();
        timers.retain(|timer| timer.id != id || timer.owner != *owner);
        Ok(timers.len() < before)
    }

    async fn list_timers(&self, owner: &DataOwner) -> Result<Vec<StoredTimer>, TimerError> {
        let timers = self.timers.lock().unwrap();
        Ok(timers.iter().filter(|timer| timer.owner == *owner).cloned().collect())
    }
}

#[async_trait]
impl NoticeService for Offers {
    async fn notify(
        &self,
        _: &str,
        notice: PluginNotice,
        delivery: DeliveryTime,
    ) -> Result<(), NoticeError> {
        if self.is_broken() {
            return Err(NoticeError::Unavailable("nobody is there".to_owned()));
        }
        // A test that holds the lock stands for a store that takes long; it must not block the thread.
        while self.notices.try_lock().is_err() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        self.notices.lock().unwrap().push(notice);
        self.deliveries.lock().unwrap().push(delivery);
        Ok(())
    }

    fn report_progress(&self, _: &ToolCallContext, _: &ToolId, progress: CallProgress) {
        self.progress.lock().unwrap().push(progress);
    }
}

impl UrlOpener for Offers {
    fn open_page(&self, url: &str) -> UrlOpenResult {
        self.pages.lock().unwrap().push(url.to_owned());
        UrlOpenResult::Browser
    }
}

impl PackageService for Offers {
    fn list_releases<'a>(
        &'a self,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Vec<String>, PackageFetchError>> {
        Box::pin(async move {
            if name == "nothing" {
                return Err(PackageFetchError::NotFound("there is no nothing".to_owned()));
            }
            Ok(["2.0", "0.9.0", "0.8"].map(str::to_owned).to_vec())
        })
    }

    fn fetch_package<'a>(
        &'a self,
        name: &'a str,
        _version: &'a str,
    ) -> BoxFuture<'a, Result<Arc<[PackageFile]>, PackageFetchError>> {
        Box::pin(async move {
            if name == "nothing" {
                return Err(PackageFetchError::NotFound("there is no nothing".to_owned()));
            }
            let file = |path: &str| PackageFile { path: path.to_owned(), data: vec![0; 10] };
            Ok([file("a.py"), file("b/c.py")].into())
        })
    }
}
