//! Guide: describes the assistant.

use wasmtime::{Store, component::Instance};

use crate::{
    abi::Mismatch, bindings::v0_1::exports::sallyport::plugin::guide, guest::Guest, roles::Persona,
};

pub(super) async fn describe(
    guide: &guide::GuestIndices,
    store: &mut Store<Guest>,
    instance: Instance,
) -> wasmtime::Result<Persona> {
    let guest = guide.load(&mut *store, &instance).map_err(Mismatch::wrap)?;
    let persona = guest.call_describe(store).await?;
    Ok(Persona {
        system_prompt: persona.system_prompt,
        temperature: persona.temperature,
        memory_policy: persona.memory_policy,
        initial_memories: persona.initial_memories,
    })
}
