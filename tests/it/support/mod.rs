//! What the themes share: a home for the program, the program itself, and the servers it talks to.

pub(crate) mod acp;
pub(crate) mod bomb;
pub(crate) mod browser;
pub(crate) mod client;
pub(crate) mod dice;
pub(crate) mod disk;
pub(crate) mod events;
pub(crate) mod home;
pub(crate) mod identity;
pub(crate) mod living;
pub(crate) mod mcp;
pub(crate) mod offers;
pub(crate) mod openai;
pub(crate) mod patience;
pub(crate) mod person;
pub(crate) mod process;
pub(crate) mod registry;
pub(crate) mod running;
pub(crate) mod server;
pub(crate) mod terminal;
pub(crate) mod transcript;
pub(crate) mod warden;
pub(crate) mod wat;
pub(crate) mod watch;

pub(crate) use acp::AcpClient;
pub(crate) use browser::Browser;
pub(crate) use home::{Home, Ran};
pub(crate) use mcp::McpClient;
pub(crate) use openai::{OpenAi, Reply};
pub(crate) use person::Person;
pub(crate) use registry::Tools;
pub(crate) use running::Running;
pub(crate) use server::{Response, Server};
pub(crate) use terminal::Terminal;
pub(crate) use warden::{Guarded, Scripted};
pub(crate) use watch::Watch;
