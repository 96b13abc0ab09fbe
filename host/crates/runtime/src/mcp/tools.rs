//! The tools of a server, as its plugin has them, and the file that keeps them between starts.

use std::path::{Path, PathBuf};

use sallyport_contract::{PluginName, ToolDescriptor, ToolId, ToolName, text};
use sallyport_mcp_client::OfferedTool;
use sallyport_sandbox::metadata;
use sallyport_untrusted_file as untrusted_file;

use crate::atomic_file;

/// Most tools of a server that are used. A server with more is refused, because a model could not
/// choose among them.
pub(super) const TOOLS_MAX: usize = 256;

/// Size limit of the file. The longest list that a connection takes fits.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// The longest part of a refused name that is shown, in characters.
const NAME_CHARS_MAX: usize = 60;

/// What is known of a server's tools.
#[derive(Debug, Clone, Default)]
pub(crate) struct KnownTools {
    pub(crate) tools: Vec<ToolDescriptor>,
    /// Remarks about tools that are left out.
    pub(crate) remarks: Vec<String>,
    /// Why they are not known.
    pub(crate) problem: Option<String>,
}

impl KnownTools {
    /// The tools of a server. One that cannot be used is left out with a remark.
    pub(super) fn from_offered(plugin: &PluginName, offered: &[OfferedTool]) -> Self {
        let mut known = Self::default();
        for tool in offered {
            match describe_tool(plugin, tool) {
                Ok(tool) if known.tools.iter().any(|other| other.id == tool.id) => {
                    known.remarks.push(format!("it lists {} twice", tool.id.tool));
                }
                Ok(tool) => known.tools.push(tool),
                Err(remark) => known.remarks.push(remark),
            }
        }
        known
    }

    /// Why no tools are known.
    pub(super) fn unknown(problem: String) -> Self {
        Self { problem: Some(problem), ..Self::default() }
    }
}

/// Characters that cannot be seen are shown as what they are, because a server could hide orders to
/// the model among them.
fn describe_tool(plugin: &PluginName, tool: &OfferedTool) -> Result<ToolDescriptor, String> {
    let name: ToolName = tool.name.parse().map_err(|error| {
        let name = text::escape_excerpt(&tool.name, NAME_CHARS_MAX);
        format!("the tool {name:?} is left out: {error}")
    })?;
    let descriptor = ToolDescriptor {
        id: ToolId::new(plugin.clone(), name.clone()),
        title: tool.title.clone(),
        description: text::escape_multiline(&tool.description),
        parameters: tool.parameters.clone(),
        output: tool.output.clone(),
        hints: tool.claims.into(),
    };
    metadata::check_and_trim_tool(descriptor)
        .map_err(|problem| format!("the tool {name} is left out: {}", text::escape_line(&problem)))
}

/// The file that keeps the tools of one server. Without it, each start of the host would start the
/// server.
#[derive(Debug)]
pub(super) struct ToolFile(PathBuf);

impl ToolFile {
    /// The file of a server in the folder for what can be made again.
    pub(super) fn new(cache: &Path, plugin: &PluginName, digest: &str) -> Self {
        Self(cache.join("mcp").join(format!("{plugin}-{digest}.json")))
    }

    /// Reads the tools. A file that is missing, broken or another user's counts as none.
    pub(super) fn read(&self) -> Option<Vec<OfferedTool>> {
        let text = untrusted_file::read_own_text(&self.0, FILE_BYTES_MAX).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Forgets the tools, so that the server is asked again.
    pub(super) fn remove(&self) {
        // If there is no such file, there is nothing to forget.
        let _ = std::fs::remove_file(&self.0);
    }

    /// Keeps the tools, unless the file has them already. If that fails, the next start asks the
    /// server again.
    pub(super) fn keep(&self, tools: &[OfferedTool]) {
        if self.read().as_deref() != Some(tools) {
            self.write(tools);
        }
    }

    fn write(&self, tools: &[OfferedTool]) {
        let Ok(json) = serde_json::to_vec(tools) else { return };
        if json.len() as u64 > FILE_BYTES_MAX {
            // It could not be read again, and the one before it is out of date.
            return self.remove();
        }
        if let Some(folder) = self.0.parent()
            && std::fs::create_dir_all(folder).is_ok()
        {
            let _ = atomic_file::replace_file(&self.0, &json, atomic_file::PRIVATE_MODE);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_could_not_be_read_again_is_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let file = ToolFile::new(folder.path(), &"fake".parse().unwrap(), "digest");
        let tools = |description: String| {
            let (name, parameters) = ("echo".to_owned(), serde_json::json!({}));
            let (title, output, claims) = (None, None, Default::default());
            vec![OfferedTool { name, title, description, parameters, output, claims }]
        };
        let short = tools("Echoes.".to_owned());
        file.keep(&short);
        assert_eq!(file.read(), Some(short));
        file.keep(&tools("x".repeat(FILE_BYTES_MAX as usize)));
        assert!(!file.0.exists(), "the list before it is out of date");
    }
}
