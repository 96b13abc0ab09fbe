//! Plugin messages to the user, which are not part of the turns of a session.

use sallyport_contract::services::PluginNotice;

use crate::journal::JournalRecord;

/// A plugin's message to the user and its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastNotice {
    /// The number of turns before it, without undone ones.
    pub after_turn: usize,
    /// The message and its sender.
    pub notice: PluginNotice,
}

/// Returns the plugin messages of a session, in order. They remain when a turn is undone.
pub fn past_notices(records: &[JournalRecord]) -> Vec<PastNotice> {
    let (mut turns, mut notices) = (0_usize, Vec::<PastNotice>::new());
    for record in records {
        match record {
            JournalRecord::Input { .. } => turns += 1,
            JournalRecord::Undone => {
                turns = turns.saturating_sub(1);
                let later = notices.iter_mut().rev().take_while(|past| past.after_turn > turns);
                later.for_each(|past| past.after_turn = turns);
            }
            JournalRecord::Noticed { notice } => {
                notices.push(PastNotice { after_turn: turns, notice: notice.clone() });
            }
            _ => {}
        }
    }
    notices
}
