//! `cargo xtask load`: the service under load on the loopback, beside axum alone on the same routes.
//!
//! `oha` makes the requests. Both servers take turns, so that noise affects them alike, and each row
//! has the medians of its rounds.

mod client;
mod oha;
mod servers;
mod table;

use std::time::Duration;

use anyhow::{Result, bail};

use self::{
    oha::{LoadFigures, LoadTarget, Oha},
    servers::{FloorServer, LoadedService},
    table::{LoadRow, LoadTable},
};
use crate::{bench, build, dist};

/// Requests at the same time. A user may have eight calls at a time.
const CONNECTIONS: usize = 8;

/// What the arguments ask for.
struct LoadOptions {
    /// Whether the program is that of a debug build, for a trial.
    is_debug: bool,
    /// Whether to write the table into docs/performance.md.
    write: bool,
    rounds: usize,
    /// How long each server is asked in a round.
    time: Duration,
}

impl LoadOptions {
    fn parse(args: &[String]) -> Result<Self> {
        let has = |name: &str| args.iter().any(|arg| arg == name);
        if let Some(unknown) = args.iter().find(|arg| !["--debug", "--write"].contains(&&***arg)) {
            bail!("load takes --debug and --write, and not {unknown:?}");
        }
        let is_debug = has("--debug");
        if is_debug && has("--write") {
            bail!("figures of a debug program do not belong into the page");
        }
        let (rounds, seconds) = if is_debug { (1, 1) } else { (5, 5) };
        Ok(Self { is_debug, write: has("--write"), rounds, time: Duration::from_secs(seconds) })
    }
}

/// A kind of request that is measured.
struct LoadKind {
    name: &'static str,
    method: &'static str,
    path: &'static str,
    body: Option<&'static str>,
}

const KINDS: [LoadKind; 2] = [
    LoadKind {
        name: "`GET /healthz`: no token, no work",
        method: "GET",
        path: "/healthz",
        body: None,
    },
    LoadKind {
        name: "a call of `clock.get_time` in a sandbox",
        method: "POST",
        path: servers::CALL_PATH,
        body: Some(servers::CALL_BODY),
    },
];

/// Loads both servers, and prints one table or writes it into the page.
pub(crate) fn run_load(args: &[String]) -> Result<()> {
    let options = LoadOptions::parse(args)?;
    build::build_plugins()?;
    let program = match options.is_debug {
        true => build::build_host()?,
        false => dist::build_program()?,
    };
    let oha = Oha::install()?;
    let service = LoadedService::start(&program)?;
    let floor = FloorServer::start(options.is_debug, &service.call_answer()?)?;
    let mut rows = Vec::new();
    for kind in KINDS {
        eprintln!("measuring: {} …", kind.name);
        rows.push(measure(&oha, &kind, &service, &floor, &options)?);
    }
    eprintln!("measuring: sessions …");
    let sessions = client::measure_sessions(&service, CONNECTIONS, options.time)?;
    let table = LoadTable {
        rows,
        sessions,
        resident_bytes: (service.resident_bytes()?, floor.resident_bytes()?),
    };
    println!("{}", table.to_markdown());
    if options.write {
        bench::write_table("load", &table.to_markdown())?;
    }
    Ok(())
}

fn measure(
    oha: &Oha,
    kind: &LoadKind,
    service: &LoadedService,
    floor: &FloorServer,
    options: &LoadOptions,
) -> Result<LoadRow> {
    let target = |url: &str| LoadTarget {
        url: format!("{url}{}", kind.path),
        method: kind.method,
        body: kind.body,
        token: service.token().to_owned(),
    };
    let (ours, theirs) = (target(service.url()), target(floor.url()));
    let (mut of_service, mut of_floor) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        of_service.push(oha.load(&ours, CONNECTIONS, options.time)?);
        of_floor.push(oha.load(&theirs, CONNECTIONS, options.time)?);
    }
    // One client at a time shows what a request costs, without a wait for others.
    let alone = |target| oha.load(target, 1, options.time);
    Ok(LoadRow {
        name: kind.name,
        service: LoadFigures::medians(&of_service),
        floor: LoadFigures::medians(&of_floor),
        service_alone: alone(&ours)?,
        floor_alone: alone(&theirs)?,
    })
}
