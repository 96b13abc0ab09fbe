//! The words of a plugin's notice, shared by all front ends at the terminal.

use sallyport_contract::services::PluginNotice;

/// Names the source of a notice, such as `timer says aloud, late`. A plugin's name is safe to
/// print.
pub(super) fn notice_source(notice: &PluginNotice) -> String {
    let aloud = if notice.speech.is_some() { " aloud" } else { "" };
    let late = if notice.late { ", late" } else { "" };
    format!("{} says{aloud}{late}", notice.plugin)
}

/// Returns the lines of a notice. Repeated lines, such as those of timers that end at the same
/// time, become one line with a count.
pub(super) fn notice_lines(notice: &PluginNotice) -> Vec<String> {
    let mut lines: Vec<(&str, usize)> = Vec::new();
    for line in notice.text.lines() {
        match lines.last_mut() {
            Some((last, times)) if *last == line => *times += 1,
            _ => lines.push((line, 1)),
        }
    }
    let line = |(line, times): (&str, usize)| match times {
        1 => line.to_owned(),
        times => format!("{line} ({times} times)"),
    };
    lines.into_iter().map(line).collect()
}
