//! Timers: converts firings to the types of the contract.

use sallyport_contract::{
    AdmittedCall,
    services::{StoredTimer, TimerFiring, TimerSchedule},
};
use wasmtime::{Store, component::Instance};

use super::tools::{call_context, convert_unit_result};
use crate::{
    abi::{InterfaceMismatch, ToolReturnValue},
    bindings::v0_1::{exports::sallyport::plugin::timers, sallyport::plugin::schedule},
    guest::Guest,
};

pub(super) async fn fire_timer(
    timers: &timers::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
    call: &AdmittedCall,
    firing: TimerFiring,
) -> wasmtime::Result<ToolReturnValue> {
    let guest = timers.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    let context = call_context(call, &store.data().run_context);
    let bytes_max = store.data().output_bytes_max();
    let firing = timers::Firing {
        timer: timer_to_wit(firing.timer),
        due_ms: firing.due_ms,
        late: firing.late,
        missed: firing.missed,
        again: firing.will_repeat,
        extra: None,
    };
    let result = guest.call_on_timer(store, &context, &firing).await?;
    Ok(convert_unit_result(result, bytes_max))
}

fn timer_to_wit(timer: StoredTimer) -> schedule::Timer {
    schedule::Timer {
        id: timer.id,
        moment: moment_to_wit(timer.schedule),
        next_ms: timer.next_ms,
        label: timer.label,
        payload: timer.payload,
        extra: None,
    }
}

fn moment_to_wit(moment: TimerSchedule) -> schedule::Moment {
    match moment {
        TimerSchedule::AtMs(ms) => schedule::Moment::AtMs(ms),
        TimerSchedule::InMs(ms) => schedule::Moment::InMs(ms),
        TimerSchedule::EveryMs(ms) => schedule::Moment::EveryMs(ms),
        TimerSchedule::Calendar { cron, time_zone } => {
            schedule::Moment::Calendar(schedule::Calendar { cron, time_zone, extra: None })
        }
    }
}
