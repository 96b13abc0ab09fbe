//! Bindings generated from `wit/`, one module per version of the contract. They are private to this
//! crate.

pub(crate) mod v0_1 {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        world: "host",
        imports: {
            default: trappable,
            "sallyport:plugin/notify.send": async | trappable,
            "sallyport:plugin/open-url.open": async | trappable,
            "sallyport:plugin/packages.fetch": async | trappable,
            "sallyport:plugin/packages.releases": async | trappable,
            "sallyport:plugin/schedule.add": async | trappable,
            "sallyport:plugin/schedule.cancel": async | trappable,
            "sallyport:plugin/schedule.list-timers": async | trappable,
            "sallyport:plugin/secrets.get": async | trappable,
            "sallyport:plugin/state.compare-and-set": async | trappable,
            "sallyport:plugin/state.get": async | trappable,
            "sallyport:plugin/state.list-keys": async | trappable,
            "sallyport:plugin/state.remove": async | trappable,
            "sallyport:plugin/state.set": async | trappable,
        },
        exports: { default: async },
    });
}
