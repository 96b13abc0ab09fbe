//! The program with its store in PostgreSQL. `cargo xtask postgres` starts the server; without it,
//! only the tests run that need none.

mod doctor;
mod faults;
mod migrate;
