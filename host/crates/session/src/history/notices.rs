//! What plugins told the person, beside the turns of a session.

use sallyport_contract::services::Notice;

use crate::journal::Record;

/// What a plugin told the person, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastNotice {
    /// How many turns there were by then, those not counted that the person took back.
    pub after_turn: usize,
    /// What, and who said it.
    pub notice: Notice,
}

/// Returns what plugins said in a session, in its order. It stays when a turn is taken back.
pub fn notices(records: &[Record]) -> Vec<PastNotice> {
    let (mut turns, mut notices) = (0_usize, Vec::<PastNotice>::new());
    for record in records {
        match record {
            Record::Input { .. } => turns += 1,
            Record::Undone => {
                turns = turns.saturating_sub(1);
                let later = notices.iter_mut().rev().take_while(|past| past.after_turn > turns);
                later.for_each(|past| past.after_turn = turns);
            }
            Record::Noticed { notice } => {
                notices.push(PastNotice { after_turn: turns, notice: notice.clone() });
            }
            _ => {}
        }
    }
    notices
}
