//! The two servers: `sallyport serve` in a home of its own, and axum alone.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use super::client::HttpClient;
use crate::{
    build,
    process::{cargo_command, run_command},
    serving::ServingProgram,
};

/// The call that is made.
pub(super) const CALL_PATH: &str = "/v1/tools/clock.get_time/call";
pub(super) const CALL_BODY: &str = r#"{"arguments":{"timezone":"Asia/Tokyo"}}"#;

/// The service with one plugin and one user.
pub(super) struct LoadedService {
    serving: ServingProgram,
    token: String,
    _home: TempDir,
}

impl LoadedService {
    pub(super) fn start(program: &Path) -> Result<Self> {
        let home = tempfile::tempdir()?;
        let plugin = home.path().join("plugins/clock");
        fs::create_dir_all(&plugin)?;
        let built = build::plugin_output_folder("clock");
        for file in ["clock.wasm", "plugin.toml"] {
            fs::copy(built.join(file), plugin.join(file)).context("the plugin clock")?;
        }
        let command = || {
            let mut command = Command::new(program);
            command.env("SALLYPORT_HOME", home.path()).env("SALLYPORT_COLOR", "never");
            command.stdin(Stdio::null());
            command
        };
        let made =
            command().args(["serve", "token", "add", "load", "--role", "operator"]).output()?;
        ensure!(made.status.success(), "no token: {}", String::from_utf8_lossy(&made.stderr));
        let token = String::from_utf8(made.stdout)?.trim().to_owned();
        // The service does not wait for the compiler, so the plugin is compiled before it starts.
        let called = command().args(["call", "clock.get_time", "{}"]).output()?;
        ensure!(called.status.success(), "no call: {}", String::from_utf8_lossy(&called.stderr));
        let mut serve = command();
        serve.args(["serve", "--listen", "127.0.0.1:0", "--model", "offline"]);
        let serving = ServingProgram::start(&mut serve, " tools at ")?;
        Ok(Self { serving, token, _home: home })
    }

    /// The address, without the version.
    pub(super) fn url(&self) -> &str {
        self.serving.url.trim_end_matches("/v1")
    }

    pub(super) fn token(&self) -> &str {
        &self.token
    }

    pub(super) fn client(&self) -> Result<HttpClient> {
        HttpClient::connect(self.url(), &self.token)
    }

    /// What a call is answered, once the files of the plugin are read.
    pub(super) fn call_answer(&self) -> Result<String> {
        let mut client = self.client()?;
        client.post(CALL_PATH, CALL_BODY, 200)?;
        client.post(CALL_PATH, CALL_BODY, 200)
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        self.serving.resident_bytes()
    }
}

/// axum alone.
pub(super) struct FloorServer(ServingProgram);

impl FloorServer {
    /// Builds it like the program, and starts it.
    pub(super) fn start(is_debug: bool, call_answer: &str) -> Result<Self> {
        let profile = if is_debug { "dev" } else { "dist" };
        let mut build = cargo_command();
        build.arg("build").args(build::quiet_flag()).args(["--profile", profile]);
        run_command(build.args(["--package", "sallyport-http-floor"]))?;
        let folder = if is_debug { "debug" } else { "dist" };
        let program: PathBuf = build::target_folder().join(folder).join("sallyport-http-floor");
        let mut command = Command::new(program);
        Ok(Self(ServingProgram::start_printing(command.arg(call_answer))?))
    }

    pub(super) fn url(&self) -> &str {
        &self.0.url
    }

    pub(super) fn resident_bytes(&self) -> Result<u64> {
        self.0.resident_bytes()
    }
}
