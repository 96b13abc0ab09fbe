//! Numbers in databases, whose integers are signed.

/// Converts a number for a database. A time that does not fit is 300
/// million years away.
pub(crate) fn to_sql_integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts a number that was written with [`to_sql_integer`]. A negative one is foreign and
/// becomes 0.
pub(crate) fn from_sql_integer(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}
