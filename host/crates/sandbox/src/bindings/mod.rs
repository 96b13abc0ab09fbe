//! Generated from `wit/`, one module per version of the contract. Nothing of it leaves this crate.

pub(crate) mod v0_1 {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "everything",
        imports: { default: trappable, "sallyport:plugin/secrets.get": async | trappable },
        exports: { default: async },
    });
}
