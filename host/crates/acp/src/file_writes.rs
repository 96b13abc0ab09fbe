//! The files that calls write, read before the calls run.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sallyport_contract::{
    Admission, BoxFuture, CallReport, RequestedCall, ToolDescriptor, Toolbox,
};
use sallyport_runtime::{
    Host,
    file_write::{FileWrite, file_write},
};

/// A toolbox that looks at a file before a call can change it. When the event of the call arrives,
/// it may have run already.
pub(crate) struct FileWrites {
    host: Arc<Host>,
    inner: Arc<dyn Toolbox>,
    /// By the id of the call.
    writes: Mutex<HashMap<String, FileWrite>>,
}

impl FileWrites {
    pub(crate) fn new(host: Arc<Host>, inner: Arc<dyn Toolbox>) -> Self {
        Self { host, inner, writes: Mutex::default() }
    }

    /// Returns what a call would write.
    pub(crate) fn write_of(&self, call_id: &str) -> Option<FileWrite> {
        self.writes().get(call_id).cloned()
    }

    /// Takes what a call that has ended was to write.
    pub(crate) fn take_write(&self, call_id: &str) -> Option<FileWrite> {
        self.writes().remove(call_id)
    }

    fn note_write(&self, call: &RequestedCall) {
        let call_id = &call.context.call_id;
        match file_write(call, &self.host.registry()) {
            Some(write) => drop(self.writes().insert(call_id.clone(), write)),
            // The user may have edited the arguments.
            None => drop(self.writes().remove(call_id)),
        }
    }

    fn writes(&self) -> MutexGuard<'_, HashMap<String, FileWrite>> {
        self.writes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Toolbox for FileWrites {
    fn tools(&self) -> Arc<[ToolDescriptor]> {
        self.inner.tools()
    }

    fn admit_call(
        self: Arc<Self>,
        call: RequestedCall,
    ) -> BoxFuture<'static, Result<Admission, Box<CallReport>>> {
        self.note_write(&call);
        Arc::clone(&self.inner).admit_call(call)
    }
}
