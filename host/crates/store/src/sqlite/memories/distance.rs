//! SQL functions that compare vectors, registered for every connection of this process.

use std::{
    ffi::{c_char, c_int},
    sync::Once,
};

use rusqlite::ffi::{sqlite3, sqlite3_api_routines, sqlite3_auto_extension};
// Links the function below; the crate declares it without its parameters.
use sqlite_vec as _;

#[expect(unsafe_code, reason = "the extension is written in C")]
unsafe extern "C" {
    fn sqlite3_vec_init(
        database: *mut sqlite3,
        message: *mut *mut c_char,
        api: *const sqlite3_api_routines,
    ) -> c_int;
}

/// Registers the vector functions for every connection that is opened from now on.
pub(crate) fn register_vector_functions() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        // SAFETY: the function is an entry point of an extension as the database calls it, linked
        // into this program with the database's own names, and lives as long as the program.
        #[expect(unsafe_code, reason = "the one way to add functions that are written in C")]
        let code = unsafe { sqlite3_auto_extension(Some(sqlite3_vec_init)) };
        debug_assert_eq!(code, 0, "only a lack of memory keeps it from being added");
    });
}
