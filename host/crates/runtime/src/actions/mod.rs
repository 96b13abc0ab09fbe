//! Plugins that are one JSON file.
//!
//! [`ActionPlugin`] reads the file and what is beside it. An action either says its request, which
//! the host sends through the way out of every guest, or is a tool of a component in the same
//! folder. [`ActionExecutor`] runs both, and puts the definition's own words on their results.

mod executor;
mod guidance;
mod plugin;

pub(crate) use executor::ActionExecutor;
pub(crate) use plugin::{
    ActionPlugin, definition_file, definition_name, is_definition_file, no_way_to_run,
};
