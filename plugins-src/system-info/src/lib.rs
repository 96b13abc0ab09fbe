//! A tool that describes the machine: operating system, processors, memory and uptime.

mod parse;
mod sentence;

use std::{fs::File, io::Read};

use sallyport_sdk::prelude::*;

use parse::{Memory, Processors};

const OS_RELEASE: &str = "/etc/os-release";
const KERNEL: &str = "/proc/sys/kernel/osrelease";
const CPUINFO: &str = "/proc/cpuinfo";
const MEMINFO: &str = "/proc/meminfo";
const UPTIME: &str = "/proc/uptime";

/// The files that the plugin reads, as its manifest requests them.
const FILES: [&str; 5] = [OS_RELEASE, KERNEL, CPUINFO, MEMINFO, UPTIME];

/// Maximum size of a file, in bytes. `/proc/cpuinfo` is the largest, with about 1.5 KB per
/// processor.
const FILE_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// What is known about the machine. What could not be read is absent.
#[derive(Debug, Default, PartialEq, Serialize, JsonSchema)]
struct SystemInfo {
    /// Name and version of the operating system.
    #[serde(skip_serializing_if = "Option::is_none")]
    operating_system: Option<String>,
    /// Version of the kernel.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<String>,
    /// The processors.
    #[serde(skip_serializing_if = "Option::is_none")]
    processors: Option<Processors>,
    /// The memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<Memory>,
    /// How long the machine has been up.
    #[serde(skip_serializing_if = "Option::is_none")]
    uptime_seconds: Option<u64>,
    /// Files that would tell more and are not granted or do not exist.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing: Vec<String>,
}

/// Describes the machine that this runs on: operating system, kernel, processors (number and
/// model), memory (total and available, in bytes) and uptime.
#[tool(read_only, idempotent = false, open_world = false)]
fn get_system_info() -> Result<Output<SystemInfo>, ToolError> {
    gather(read)
}

fn read(path: &str) -> Option<String> {
    let mut bytes = Vec::new();
    File::open(path).ok()?.take(FILE_BYTES_MAX).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn gather(read: impl Fn(&str) -> Option<String>) -> Result<Output<SystemInfo>, ToolError> {
    let [os_release, kernel, cpuinfo, meminfo, uptime] = FILES.map(&read);
    let texts = [&os_release, &kernel, &cpuinfo, &meminfo, &uptime];
    let missing: Vec<_> = FILES
        .iter()
        .zip(texts)
        .filter(|(_, text)| text.is_none())
        .map(|(path, _)| (*path).to_owned())
        .collect();
    if missing.len() == FILES.len() {
        return Err(ToolError::Denied(format!(
            "nothing about this machine may be read: the policy grants none of {}",
            FILES.join(", ")
        )));
    }
    let info = SystemInfo {
        operating_system: os_release.as_deref().and_then(parse::operating_system),
        kernel: kernel.as_deref().and_then(parse::kernel),
        processors: cpuinfo.as_deref().and_then(parse::processors),
        memory: meminfo.as_deref().and_then(parse::memory),
        uptime_seconds: uptime.as_deref().and_then(parse::uptime_seconds),
        missing,
    };
    let speech = sentence::about(&info);
    Ok(Output::new(info).speech(speech))
}

sallyport_sdk::export_plugin!(tools = [get_system_info]);

#[cfg(test)]
mod tests {
    use sallyport_sdk::ToolReturn;

    use super::*;

    const TEXTS: [(&str, &str); 5] = [
        (OS_RELEASE, "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\n"),
        (KERNEL, "6.12.48\n"),
        (CPUINFO, "processor\t: 0\nmodel name\t: Example 3000\n\nprocessor\t: 1\n"),
        (MEMINFO, "MemTotal:       16384000 kB\nMemAvailable:    8192000 kB\n"),
        (UPTIME, "273600.17 1000.00\n"),
    ];

    fn granted(paths: &[&str]) -> Result<Output<SystemInfo>, ToolError> {
        gather(|path| {
            let (_, text) = TEXTS.iter().find(|(file, _)| *file == path && paths.contains(file))?;
            Some((*text).to_owned())
        })
    }

    #[test]
    fn everything_granted_is_everything_told() {
        let output = granted(&FILES).into_output().unwrap();
        let want = json!({
            "operating_system": "Debian GNU/Linux 13 (trixie)",
            "kernel": "6.12.48",
            "processors": { "count": 2, "model": "Example 3000" },
            "memory": { "total_bytes": 16_777_216_000_u64, "available_bytes": 8_388_608_000_u64 },
            "uptime_seconds": 273_600,
        });
        assert_eq!(output.data, want);
        assert_eq!(
            output.speech.as_deref(),
            Some(
                "This machine runs Debian GNU/Linux 13 (trixie), has 2 processors, has 15.6 GiB of \
                 memory with 7.8 GiB available, and has been up for 3 days."
            )
        );
    }

    #[test]
    fn what_is_not_granted_is_reported_as_missing() {
        let output = granted(&[UPTIME, KERNEL]).unwrap();
        assert_eq!(output.data.missing, [OS_RELEASE, CPUINFO, MEMINFO]);
        assert_eq!(output.data.kernel.as_deref(), Some("6.12.48"));
        assert_eq!(output.speech.as_deref(), Some("This machine has been up for 3 days."));
    }

    #[test]
    fn nothing_granted_is_a_denial_that_names_every_file() {
        let error = granted(&[]).unwrap_err();
        assert_eq!(error.kind(), "denied");
        assert!(FILES.iter().all(|path| error.message().contains(path)), "{error}");
    }

    #[test]
    fn the_manifest_requests_every_file_and_no_other() {
        let manifest = include_str!("../plugin.toml");
        let requested: Vec<_> = manifest
            .lines()
            .filter_map(|line| line.strip_prefix("path = \"")?.strip_suffix('"'))
            .collect();
        assert_eq!(requested, FILES);
    }
}
