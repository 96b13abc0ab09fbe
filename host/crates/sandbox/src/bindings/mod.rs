//! Generated from `wit/`, one module per version of the contract. Nothing of it leaves this crate.

pub(crate) mod v0_1 {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "managed-tool-plugin",
        imports: { default: trappable },
        exports: { default: async },
    });
}
