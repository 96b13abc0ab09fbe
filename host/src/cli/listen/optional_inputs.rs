//! Optional inputs of a session that plugins attend. A missing one is pending forever.

use std::future;

use sallyport_runtime::roles::{
    listener::stdin::InputLine,
    ui::{UiCommand, UiPluginHandle, UiStatus},
};
use tokio::sync::{mpsc, oneshot};

use super::participants::SelectedUi;

/// How a session that plugins attend ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ShutdownMode {
    /// No further turn is started.
    Now,
    /// Pending input is handled first.
    AfterPendingInput,
}

pub(super) async fn next_command(selected_ui: &mut Option<SelectedUi>) -> Option<UiCommand> {
    match selected_ui {
        Some(selected_ui) => selected_ui.commands.recv().await,
        None => future::pending().await,
    }
}

pub(super) async fn next_ui_status(ui: &mut Option<UiPluginHandle>) -> UiStatus {
    match ui {
        Some(ui) => ui.wait_for_status().await,
        None => future::pending().await,
    }
}

pub(super) async fn next_line(lines: &mut Option<mpsc::Receiver<InputLine>>) -> Option<InputLine> {
    match lines {
        Some(lines) => lines.recv().await,
        None => future::pending().await,
    }
}

pub(super) async fn wait_for_end(
    ended: &mut Option<oneshot::Receiver<()>>,
) -> Result<(), oneshot::error::RecvError> {
    match ended {
        Some(ended) => ended.await,
        None => future::pending().await,
    }
}
