//! The program from its start to its end, against `/bin/true`, and its size.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{Context, Result, ensure};

use super::table::{Figure, Unit};
use crate::{
    dist,
    process::{repository_root, run_for_output},
};

/// Pairs of runs. The two programs alternate, so noise affects both alike.
const ROUNDS: usize = 200;

/// Rounds of the rows that take longer.
const SLOW_ROUNDS: usize = 30;

/// The plugins of the large home.
const MANY_PLUGINS: usize = 1000;

/// A command line of the program, as a row.
struct StartRow<'a> {
    name: &'a str,
    args: &'a [&'a str],
    goal: f64,
    plugins: &'a Path,
    /// The folder of the host in `target`. What a thousand plugins leave there slows other rows.
    home: &'static str,
    rounds: usize,
    /// Whether the goal is a ratio to `/bin/true`, or a time.
    has_floor: bool,
}

/// The rows of the group `start`.
pub(super) fn measure_starts() -> Result<Vec<Figure>> {
    let program = dist::build_program()?;
    let plugins = repository_root().join("plugins-wasm");
    let many = many_plugins(&plugins)?;
    let ratio = |name, args, goal| StartRow {
        name,
        args,
        goal,
        plugins: &plugins,
        home: "bench-home",
        rounds: ROUNDS,
        has_floor: true,
    };
    let time =
        |name, args, goal, rounds| StartRow { rounds, has_floor: false, ..ratio(name, args, goal) };
    let rows = [
        ratio("start of `--version` ÷ /bin/true", &["--version"], 2.0),
        ratio("start of `call clock.get_time` ÷ /bin/true", &["call", "clock.get_time", "{}"], 6.0),
        time("`tool list`, the plugins of this repository", &["tool", "list"], 0.008, ROUNDS),
        StartRow {
            plugins: &many,
            home: "bench-home-many",
            ..time("`tool list`, 1,000 plugins", &["tool", "list"], 0.08, SLOW_ROUNDS)
        },
        time(
            "Python 1+1, a process of its own",
            &["call", "python.execute", r#"{"code":"1+1"}"#],
            0.025,
            SLOW_ROUNDS,
        ),
    ];
    let mut figures = Vec::new();
    for row in rows {
        figures.push(measure_start(&program, &row)?);
    }
    figures.push(Figure {
        group: String::new(),
        name: "size of the program".into(),
        ours: fs::metadata(&program)?.len() as f64,
        floor: None,
        goal: 30e6,
        unit: Unit::Bytes,
    });
    Ok(figures)
}

fn measure_start(program: &Path, row: &StartRow<'_>) -> Result<Figure> {
    let home = repository_root().join("target").join(row.home);
    fs::create_dir_all(&home)?;
    let ours_with = |args: &[&str]| {
        let mut command = Command::new(program);
        command.env("SALLYPORT_HOME", &home).env("SALLYPORT_PLUGIN_DIR", row.plugins).args(args);
        command
    };
    let ours = || ours_with(row.args);
    // A question waits until every plugin is compiled, so nothing compiles beside the measured runs.
    let mut question = ours_with(&["run", "--model", "offline", "hello"]);
    run_for_output(&mut question)?;
    run_for_output(&mut ours())?;
    let mut pairs = Vec::new();
    for _ in 0..row.rounds {
        pairs.push((time_command(ours())?, time_command(Command::new("/bin/true"))?));
    }
    pairs.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
    let (ours, floor) = pairs[pairs.len() / 2];
    let floor = row.has_floor.then_some(floor);
    let (name, group) = (row.name.into(), String::new());
    Ok(Figure { name, group, ours, floor, goal: row.goal, unit: Unit::Seconds })
}

fn time_command(mut command: Command) -> Result<f64> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let began = Instant::now();
    let status = command.status()?;
    let elapsed = began.elapsed();
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(elapsed.as_secs_f64())
}

/// A folder with many copies of one plugin, each with a name and bytes of its own.
fn many_plugins(plugins: &Path) -> Result<PathBuf> {
    let folder = repository_root().join("target/bench-plugins");
    let component = fs::read(plugins.join("clock/clock.wasm")).context("the plugin clock")?;
    for index in 0..MANY_PLUGINS {
        let name = format!("clock-{index}");
        let own = folder.join(&name);
        if own.join("plugin.toml").exists() {
            continue;
        }
        fs::create_dir_all(&own)?;
        let mut bytes = component.clone();
        // A custom section of its own makes a component of its own.
        bytes.extend([0, 6, 1, b'n']);
        bytes.extend((index as u32).to_le_bytes());
        fs::write(own.join(format!("{name}.wasm")), bytes)?;
        let manifest =
            format!("name = \"{name}\"\nversion = \"1.0.0\"\ndescription = \"Tells the time.\"\n");
        fs::write(own.join("plugin.toml"), manifest)?;
    }
    Ok(folder)
}
