//! Loading: what a component exports and what its manifest names have to be the same.

use std::sync::Arc;

use sallyport_policy::PluginRole;
use sallyport_sandbox::SystemResolver;

use super::{ROLES, warden};
use crate::support::{
    Guarded, Home, Scripted,
    home::manifest,
    wat::{Module, Spec},
};

#[test]
fn a_component_without_tools_is_a_plugin() {
    let player = Guarded::by(warden(""));
    let roles = [PluginRole::Provider, PluginRole::Listener, PluginRole::Guide, PluginRole::Ui];
    assert_eq!(player.plugin.roles(), roles);
    assert!(player.plugin.has_http_handler());
    let home = Home::new().guest("player", ROLES);
    let list = home.run(&["plugin", "list", "--output", "json"]).ended(0).json();
    assert_eq!(list["rejected"], serde_json::json!([]), "{list}");
}

#[test]
fn a_role_that_is_named_and_not_exported_is_told() {
    let requests = ROLES.split_once("[[").unwrap().1;
    for (component, roles, words) in [
        ("player", "\"ui\", \"tools\"", "exports no tools: it has sallyport:plugin/"),
        ("raw", "\"tools\", \"provider\"", "exports no provider: it has"),
        ("raw", "\"guide\"", "sallyport:plugin/guide@0.1.0 is needed"),
    ] {
        let warden = Scripted::new(component, &format!("roles = [{roles}]\n[[{requests}"), "");
        let loaded = Guarded::load(warden, Arc::new(SystemResolver::default()));
        let error = loaded.err().unwrap().to_string();
        assert!(error.contains(words), "{error}");
    }
}

/// What is known of a component from another manifest says nothing about this one.
#[test]
fn a_role_is_missed_also_when_the_component_is_known_already() {
    let home = Home::with_own_cache().guest("raw", "");
    home.run(&["plugin", "list"]).ended(0);
    let home = home.guest("raw", "roles = [\"tools\", \"listener\"]\n");
    home.run(&["plugin", "list"]).ended(0).answers(&["exports no listener"]);
}

#[test]
fn a_tool_cannot_be_called_like_a_role() {
    let module = Module::listing(&[Spec { name: "role:timer", ..Spec::GOOD }]);
    let home = Home::new().component("bad", &manifest("bad", ""), &module.component());
    home.run(&["plugin", "list"]).ended(0).answers(&["a tool cannot be called role:timer"]);
}
