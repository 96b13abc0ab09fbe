//! The size limits of a record.
//!
//! Plugins, models and servers write most of its texts, so no text may fill the disk. A text that
//! is too long is cut, and the record is kept.

use super::{effect::AuditEffect, record::AuditRecord};

/// Longest single text. Leaves room for a long URL or the arguments of a refusal.
const TEXT_BYTES_MAX: usize = 8 * 1024;

/// Most bytes that the effects of one record take. Leaves room for everything that one call may do,
/// with paths of the usual length.
const EFFECTS_BYTES_MAX: usize = 256 * 1024;

/// Bytes that an effect takes in addition to its texts: its keys and numbers.
const EFFECT_BYTES_MIN: usize = 64;

/// Cuts texts and effects that are too long, and notes how much was cut.
pub(super) fn limit_record_size(record: &mut AuditRecord) {
    let texts = [
        Some(&mut record.who.name),
        record.user.as_mut(),
        record.conversation.as_mut(),
        record.session.as_mut(),
        record.call.as_mut(),
        record.plugin.as_mut(),
        record.digest.as_mut(),
        record.tool.as_mut(),
        record.grounds.as_mut(),
        record.outcome.as_mut(),
        record.message.as_mut(),
    ];
    texts.into_iter().flatten().for_each(limit_text_size);
    record.effects.iter_mut().flat_map(AuditEffect::texts_mut).for_each(limit_text_size);
    limit_effects_size(&mut record.effects);
}

fn limit_text_size(text: &mut String) {
    if text.len() > TEXT_BYTES_MAX {
        let end = text.floor_char_boundary(TEXT_BYTES_MAX);
        let rest = text.len() - end;
        text.truncate(end);
        text.push_str(&format!("… ({rest} more bytes)"));
    }
}

fn limit_effects_size(effects: &mut Vec<AuditEffect>) {
    let mut left_bytes = EFFECTS_BYTES_MAX;
    let fits = |effect: &mut AuditEffect| {
        let texts_bytes: usize = effect.texts_mut().iter().map(|text| text.len()).sum();
        let rest = left_bytes.checked_sub(texts_bytes + EFFECT_BYTES_MIN);
        left_bytes = rest.unwrap_or(0);
        rest.is_some()
    };
    let kept = effects.iter_mut().map(fits).take_while(|fits| *fits).count();
    let cut = effects.len() - kept;
    if cut > 0 {
        effects.truncate(kept);
        effects.push(AuditEffect::LeftOut { effects: cut as u64 });
    }
}
