//! What is copied of each table, and how its columns are made.

/// A table that is copied.
pub(super) struct TableCopy {
    /// Its name.
    pub(super) table: &'static str,
    /// What its rows are, in the plural.
    pub(super) what: &'static str,
    /// The query in SQLite.
    pub(super) select: &'static str,
    /// The columns in PostgreSQL.
    pub(super) columns: &'static str,
    /// What each of them gets.
    pub(super) outs: &'static [Out],
    /// The query in SQLite for the last key that was ever given, if keys are counted.
    pub(super) last_key: Option<&'static str>,
}

/// What a column gets, by the numbers of the columns of the query.
pub(super) enum Out {
    Number(usize),
    Flag(usize),
    Text(usize),
    Bytes(usize),
    /// The hash of several texts.
    Hash(&'static [usize]),
    /// The words of a text of the index.
    WordText(usize),
    Words(usize),
    WordCount(usize),
}

use Out::{Bytes, Flag, Hash, Number, Text, WordCount, WordText, Words};

/// All tables, those first that others refer to. Open sessions are not copied: a program that runs
/// will open its sessions in the new database itself.
pub(super) const TABLES: &[TableCopy] = &[
    TableCopy {
        table: "session",
        what: "sessions",
        select: "SELECT key, user, id, title, model, folder, created_ms, updated_ms, parent_id,
            parent_records, records, turns, tokens, cost_micro_usd, last_kept FROM session",
        columns: "key, user_id, id, title, model, folder, created_ms, updated_ms, parent_id,
            parent_records, records, turns, tokens, cost_micro_usd, last_kept",
        outs: &[
            Number(0),
            Text(1),
            Text(2),
            Text(3),
            Text(4),
            Text(5),
            Number(6),
            Number(7),
            Text(8),
            Number(9),
            Number(10),
            Number(11),
            Number(12),
            Number(13),
            Number(14),
        ],
        last_key: Some("SELECT max(seq) FROM sqlite_sequence WHERE name = 'session'"),
    },
    TableCopy {
        table: "body",
        what: "texts of records and results",
        select: "SELECT key, hash, body.text, words.text FROM body
            LEFT JOIN words ON words.rowid = body.key",
        columns: "key, hash, text, word_text, words, word_count",
        outs: &[Number(0), Bytes(1), Text(2), WordText(3), Words(3), WordCount(3)],
        last_key: Some("SELECT max(key) FROM body"),
    },
    TableCopy {
        table: "record",
        what: "records of sessions",
        select: "SELECT session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd FROM record",
        columns: "session, seq, at_ms, kind, body, turns, tokens, cost_micro_usd",
        outs: &[
            Number(0),
            Number(1),
            Number(2),
            Text(3),
            Number(4),
            Number(5),
            Number(6),
            Number(7),
        ],
        last_key: None,
    },
    TableCopy {
        table: "kept_result",
        what: "kept results",
        select: "SELECT session, number, after_records, bytes, body FROM kept_result",
        columns: "session, number, after_records, bytes, body",
        outs: &[Number(0), Number(1), Number(2), Number(3), Number(4)],
        last_key: None,
    },
    TableCopy {
        table: "leftover",
        what: "sessions that are being removed",
        select: "SELECT session FROM leftover",
        columns: "session",
        outs: &[Number(0)],
        last_key: None,
    },
    TableCopy {
        table: "audit",
        what: "records of the audit",
        select: "SELECT seq, text, hash FROM audit",
        columns: "seq, text, hash",
        outs: &[Number(0), Text(1), Bytes(2)],
        last_key: None,
    },
    TableCopy {
        table: "approval",
        what: "approvals",
        select: "SELECT user, session_id, plugin, digest, tool, subject, rule, at_ms FROM approval",
        columns: "key, user_id, session_id, plugin, digest, tool, subject, rule, at_ms",
        outs: &[
            Hash(&[0, 1, 2, 3, 4, 5, 6]),
            Text(0),
            Text(1),
            Text(2),
            Text(3),
            Text(4),
            Text(5),
            Text(6),
            Number(7),
        ],
        last_key: None,
    },
    TableCopy {
        table: "question",
        what: "questions",
        select: "SELECT id, user, text, hash, asked_ms, expires_ms, answer, carrier, answered_ms,
            received FROM question",
        columns: "key, id, user_id, text, hash, asked_ms, expires_ms, answer, carrier, answered_ms,
            received",
        outs: &[
            Hash(&[0]),
            Text(0),
            Text(1),
            Text(2),
            Text(3),
            Number(4),
            Number(5),
            Text(6),
            Text(7),
            Number(8),
            Flag(9),
        ],
        last_key: None,
    },
    TableCopy {
        table: "task",
        what: "tasks",
        select: "SELECT id, user, name, process, created_ms, updated_ms, expires_ms, end_kind,
            end_body FROM task",
        columns: "key, id, user_id, name, process, created_ms, updated_ms, expires_ms, end_kind,
            end_body",
        outs: &[
            Hash(&[0]),
            Text(0),
            Text(1),
            Text(2),
            Text(3),
            Number(4),
            Number(5),
            Number(6),
            Text(7),
            Text(8),
        ],
        last_key: None,
    },
    TableCopy {
        table: "state_owner",
        what: "owners of state",
        select: "SELECT key, plugin, user, version, bytes FROM state_owner",
        columns: "key, plugin, user_id, version, bytes",
        outs: &[Number(0), Text(1), Text(2), Number(3), Number(4)],
        last_key: Some("SELECT max(key) FROM state_owner"),
    },
    TableCopy {
        table: "state",
        what: "keys of state",
        select: "SELECT owner, name, value, version, expires_ms FROM state",
        columns: "owner, name, value, version, expires_ms",
        outs: &[Number(0), Bytes(1), Bytes(2), Number(3), Number(4)],
        last_key: None,
    },
    TableCopy {
        table: "timer",
        what: "timers",
        select: "SELECT key, plugin, user, session_id, label, payload, moment, repeats, set_ms,
            due_ms, claims, process, lease_ms, again FROM timer",
        columns: "key, plugin, user_id, session_id, label, payload, moment, repeats, set_ms,
            due_ms, claims, process, lease_ms, again",
        outs: &[
            Number(0),
            Text(1),
            Text(2),
            Text(3),
            Text(4),
            Text(5),
            Text(6),
            Flag(7),
            Number(8),
            Number(9),
            Number(10),
            Text(11),
            Number(12),
            Flag(13),
        ],
        last_key: Some("SELECT max(seq) FROM sqlite_sequence WHERE name = 'timer'"),
    },
    TableCopy {
        table: "notice",
        what: "waiting messages",
        select: "SELECT key, user, session_id, audience, notice, count, process, lease_ms
            FROM notice",
        columns: "key, user_id, session_id, audience, notice, count, process, lease_ms",
        outs: &[Number(0), Text(1), Text(2), Text(3), Text(4), Number(5), Text(6), Number(7)],
        last_key: Some("SELECT max(seq) FROM sqlite_sequence WHERE name = 'notice'"),
    },
    TableCopy {
        table: "memory",
        what: "memories",
        select:
            "SELECT key, user, hash, memory.text, embedder, dimensions, vector,
            memory_words.text FROM memory LEFT JOIN memory_words ON memory_words.rowid = memory.key",
        columns: "key, user_id, hash, text, embedder, dimensions, vector, words, word_count",
        outs: &[
            Number(0),
            Text(1),
            Bytes(2),
            Text(3),
            Text(4),
            Number(5),
            Bytes(6),
            Words(7),
            WordCount(7),
        ],
        last_key: Some("SELECT max(seq) FROM sqlite_sequence WHERE name = 'memory'"),
    },
    TableCopy {
        table: "memory_source",
        what: "sources of memories",
        select: "SELECT memory, session_id, turn, kind, at_ms FROM memory_source",
        columns: "memory, session_id, turn, kind, at_ms",
        outs: &[Number(0), Text(1), Number(2), Text(3), Number(4)],
        last_key: None,
    },
    TableCopy {
        table: "connection",
        what: "connected accounts",
        select: "SELECT id, user_id, plugin_key, plugin_name, access_token, refresh_token,
            issued_at, expires_at, scope, status, profile_data, created_at, version, refresh_until
            FROM connection",
        columns: "id, user_id, plugin_key, plugin_name, access_token, refresh_token, issued_at,
            expires_at, scope, status, profile_data, created_at, version, refresh_until",
        outs: &[
            Text(0),
            Text(1),
            Text(2),
            Text(3),
            Bytes(4),
            Bytes(5),
            Number(6),
            Number(7),
            Text(8),
            Text(9),
            Text(10),
            Number(11),
            Number(12),
            Number(13),
        ],
        last_key: None,
    },
    TableCopy {
        table: "login_groups",
        what: "users with groups",
        select: "SELECT user, groups FROM login_groups",
        columns: "key, user_id, groups",
        outs: &[Hash(&[0]), Text(0), Text(1)],
        last_key: None,
    },
    TableCopy {
        table: "user_usage",
        what: "days of usage",
        select: "SELECT user, day, calls, tokens, micro_usd FROM user_usage",
        columns: "key, user_id, day, calls, tokens, micro_usd",
        outs: &[Hash(&[0]), Text(0), Number(1), Number(2), Number(3), Number(4)],
        last_key: None,
    },
    TableCopy {
        table: "idempotency_key",
        what: "idempotency keys",
        select: "SELECT user, key, fingerprint, process, begun_ms, status, body
            FROM idempotency_key",
        columns: "hash, user_id, key, fingerprint, process, begun_ms, status, body",
        outs: &[Hash(&[0, 1]), Text(0), Text(1), Bytes(2), Text(3), Number(4), Number(5), Bytes(6)],
        last_key: None,
    },
];

impl TableCopy {
    /// The statement that adds a row. Words are sent as text, because their type has no other form.
    pub(super) fn insert_sql(&self) -> String {
        let value = |(at, out): (usize, &Out)| match out {
            Words(_) => format!("${}::text::tsvector", at + 1),
            _ => format!("${}", at + 1),
        };
        let values: Vec<String> = self.outs.iter().enumerate().map(value).collect();
        format!("INSERT INTO {} ({}) VALUES ({})", self.table, self.columns, values.join(", "))
    }
}
