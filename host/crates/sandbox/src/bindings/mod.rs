//! Bindings generated from `wit/`, one module per version of the contract. They are private to this
//! crate.

pub(crate) mod v0_1 {
    wasmtime::component::bindgen!({
        path: "../../../wit",
        // `host` is frozen without the last two exports.
        inline: "
            package sallyport:embedder;
            world embedder {
                include sallyport:plugin/host@0.1.0;
                export sallyport:plugin/prompts@0.1.0;
                export sallyport:plugin/resources@0.1.0;
            }
        ",
        world: "sallyport:embedder/embedder",
        imports: {
            default: async,
            // These never wait, so they need no future. They cannot trap either, but the macro
            // takes no empty list of flags.
            "sallyport:plugin/config": trappable,
            "sallyport:plugin/deltas": trappable,
            "sallyport:plugin/log": trappable,
            "sallyport:plugin/progress": trappable,
            "sallyport:plugin/render": trappable,
        },
        exports: { default: async },
    });
}
