//! Guide: describes the assistant.

use wasmtime::{Store, component::Instance};

use crate::{
    abi::InterfaceMismatch, bindings::v0_1::exports::sallyport::plugin::guide, guest::Guest,
    roles::GuidePersona,
};

pub(super) async fn describe_assistant(
    guide: &guide::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<GuidePersona> {
    let guest = guide.load(&mut *store, &instance).map_err(InterfaceMismatch::wrap_error)?;
    let persona = guest.call_describe(store).await?;
    Ok(GuidePersona {
        system_prompt: persona.system_prompt,
        temperature: persona.temperature,
        memory_policy: persona.memory_policy,
        initial_memories: persona.initial_memories,
    })
}
