//! The program: its command line and all of its output. The host is in `sallyport-runtime`.

pub mod cli;
