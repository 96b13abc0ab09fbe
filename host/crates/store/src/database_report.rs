//! What the operator is told about a database on a server.

/// What was copied of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedRows {
    /// What the rows are, in the plural.
    pub what: &'static str,
    /// How many there are.
    pub rows: u64,
}

/// What became of the copy of a home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HomeCopy {
    /// It was copied now.
    Copied(Vec<CopiedRows>),
    /// It was copied before, and nothing was added to it since.
    CopiedBefore,
}

/// The state of the tables in a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaState {
    /// There are none. The first use creates them.
    Missing,
    /// They were made by an older program. The next use migrates them.
    Older {
        /// The version of their schema.
        found: i64,
        /// The newest version.
        newest: i64,
    },
    /// They have the newest schema.
    Current {
        /// Its version.
        version: i64,
    },
}

/// The state of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseStatus {
    /// The address, without its password.
    pub database: String,
    /// The version of the server.
    pub server_version: String,
    /// The state of the tables.
    pub schema: SchemaState,
    /// How many sessions there are; none if the tables are not [`SchemaState::Current`].
    pub sessions: u64,
    /// Settings of the server with which it may lose what it has acknowledged.
    pub unsafe_settings: Vec<String>,
}
