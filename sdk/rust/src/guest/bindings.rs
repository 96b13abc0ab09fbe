//! Bindings generated from the contract in `wit/`: one module for everything that a component can
//! import, and one for each interface that it can export.
//!
//! Each export is a world of its own, so a component exports only the interfaces that it names.
//! Nothing is generated twice: the worlds share the types of [`tools`] and the imports of
//! [`powers`].

/// The world of a plugin with tools. Contains the imports that every plugin may use.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod tools {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "tool-plugin",
        pub_export_macro: true,
        export_macro_name: "export_tools",
    });
}

/// Everything that a component can import. It imports only what it uses.
pub(crate) mod powers {
    wit_bindgen::generate!({
        path: "../../wit",
        world: "host-imports",
        with: {
            "sallyport:plugin/config@0.1.0": super::tools::sallyport::plugin::config,
            "sallyport:plugin/log@0.1.0": super::tools::sallyport::plugin::log,
            "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types,
        },
    });
}

/// The export of a plugin with setup and teardown.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod lifecycle {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:setup; world lifecycle { export sallyport:plugin/lifecycle@0.1.0; }",
        world: "sdk:setup/lifecycle",
        pub_export_macro: true,
        export_macro_name: "export_lifecycle",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}

/// The export of a plugin whose timers call it back.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod timers {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:timers; world timers { export sallyport:plugin/timers@0.1.0; }",
        world: "sdk:timers/timers",
        pub_export_macro: true,
        export_macro_name: "export_timers",
        with: {
            "sallyport:plugin/schedule@0.1.0": super::powers::sallyport::plugin::schedule,
            "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types,
        },
    });
}

/// The export of a plugin that answers like a model.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod provider {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:provider; world provider { export sallyport:plugin/provider@0.1.0; }",
        world: "sdk:provider/provider",
        pub_export_macro: true,
        export_macro_name: "export_provider",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}

/// The export of a plugin that brings input.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod listener {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:listener; world listener { export sallyport:plugin/listener@0.1.0; }",
        world: "sdk:listener/listener",
        pub_export_macro: true,
        export_macro_name: "export_listener",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}

/// The export of a plugin that describes the assistant.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod guide {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:guide; world guide { export sallyport:plugin/guide@0.1.0; }",
        world: "sdk:guide/guide",
        pub_export_macro: true,
        export_macro_name: "export_guide",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}

/// The export of a plugin that is the user interface of a session.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod ui {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:ui; world ui { export sallyport:plugin/ui@0.1.0; }",
        world: "sdk:ui/ui",
        pub_export_macro: true,
        export_macro_name: "export_ui",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}

/// The export of a plugin that offers resources.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod resources {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:resources; world resources { export sallyport:plugin/resources@0.1.0; }",
        world: "sdk:resources/resources",
        pub_export_macro: true,
        export_macro_name: "export_resources",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}

/// The export of a plugin that offers prompts.
#[expect(missing_docs, reason = "the contract in `wit/` documents itself")]
pub mod prompts {
    wit_bindgen::generate!({
        path: "../../wit",
        inline: "package sdk:prompts; world prompts { export sallyport:plugin/prompts@0.1.0; }",
        world: "sdk:prompts/prompts",
        pub_export_macro: true,
        export_macro_name: "export_prompts",
        with: { "sallyport:plugin/types@0.1.0": super::tools::sallyport::plugin::types },
    });
}
