//! The program: its command line, and all that is ever printed. The host itself is in
//! `sallyport-runtime`.

pub mod cli;
