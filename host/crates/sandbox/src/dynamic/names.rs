//! The names of tools, from the names of exports.

/// The tool of a function: its own name, after that of its interface if it is in one.
///
/// `acme:shop/prices@1.2.0` and `look-up` make `prices.look-up`. The package is left out, because
/// the plugin has a name already.
pub(crate) fn tool_name(interface: Option<&str>, function: &str) -> String {
    match interface {
        Some(interface) => format!("{}.{function}", short_name(interface)),
        None => function.to_owned(),
    }
}

/// The name of an interface without its package and its version.
pub(crate) fn short_name(interface: &str) -> &str {
    let path = interface.split('@').next().unwrap_or(interface);
    path.rsplit('/').next().unwrap_or(path)
}
