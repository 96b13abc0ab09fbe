//! Parses the files in which Linux describes a machine. Their format differs between architectures.
//! A value that cannot be parsed is absent, not an error.

use sallyport_sdk::prelude::*;

/// The processors of a machine.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Processors {
    /// How many there are.
    pub(crate) count: u64,
    /// Their model, when the machine tells it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) model: Option<String>,
}

/// The memory of a machine.
#[derive(Debug, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Memory {
    /// All of it.
    pub(crate) total_bytes: u64,
    /// What programs could still use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) available_bytes: Option<u64>,
}

/// Parses `/etc/os-release`.
pub(crate) fn operating_system(text: &str) -> Option<String> {
    let value = |key| pairs(text, '=').find(|(k, _)| *k == key).map(|(_, value)| unquoted(value));
    let words = [value("NAME"), value("VERSION_ID")].into_iter().flatten().collect::<Vec<_>>();
    value("PRETTY_NAME").or(Some(words.join(" "))).filter(|name| !name.is_empty())
}

/// Parses `/proc/sys/kernel/osrelease`.
pub(crate) fn kernel(text: &str) -> Option<String> {
    let version = text.lines().next()?.trim();
    (!version.is_empty()).then(|| version.to_owned())
}

/// Parses `/proc/cpuinfo`: one block per processor on most architectures, one line on others.
pub(crate) fn processors(text: &str) -> Option<Processors> {
    let is_processor = |key: &str| key == "processor" || key.starts_with("processor ");
    let count = pairs(text, ':').filter(|(key, _)| is_processor(key)).fold(0, |n, _| n + 1);
    let value = |key: &&str| pairs(text, ':').find(|(k, v)| k == key && !v.is_empty());
    let model = ["model name", "cpu model", "Model", "Hardware", "cpu"].iter().find_map(value);
    (count > 0).then(|| Processors { count, model: model.map(|(_, model)| model.to_owned()) })
}

/// Parses `/proc/meminfo`.
pub(crate) fn memory(text: &str) -> Option<Memory> {
    let bytes = |key: &str| {
        let (_, value) = pairs(text, ':').find(|(k, _)| *k == key)?;
        value.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    // Kernels before 3.14 do not report available memory. Free memory is a lower bound.
    let available_bytes = bytes("MemAvailable").or_else(|| bytes("MemFree"));
    Some(Memory { total_bytes: bytes("MemTotal")?, available_bytes })
}

/// Parses `/proc/uptime`.
pub(crate) fn uptime_seconds(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().next()?.split('.').next()?.parse().ok()
}

fn pairs(text: &str, sign: char) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(move |line| {
        let (key, value) = line.split_once(sign)?;
        Some((key.trim(), value.trim()))
    })
}

/// Removes single or double quotes, and backslashes before special characters.
fn unquoted(value: &str) -> String {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    let inner = inner('"').or_else(|| inner('\'')).unwrap_or(value);
    let mut escaped = false;
    let plain = inner.chars().filter(|c| {
        escaped = *c == '\\' && !escaped;
        !escaped
    });
    plain.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operating_systems_have_names() {
        for (text, want) in [
            (
                "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian\"",
                "Debian GNU/Linux 13 (trixie)",
            ),
            ("NAME='Arch Linux'\nID=arch\n", "Arch Linux"),
            ("NAME=Alpine\nVERSION_ID=3.22.1\n", "Alpine 3.22.1"),
            ("# PRETTY_NAME=no\nPRETTY_NAME=\"A \\\"B\\\" \\\\ C\"", "A \"B\" \\ C"),
            ("PRETTY_NAME=\"", "\""),
        ] {
            assert_eq!(operating_system(text).as_deref(), Some(want));
        }
        for text in ["", "\n\n", "ID=debian", "PRETTY_NAME=\"\"", "\u{fffd}\u{fffd}"] {
            assert_eq!(operating_system(text), None, "{text:?}");
        }
    }

    #[test]
    fn kernels_have_versions() {
        assert_eq!(kernel("6.12.48+deb13-amd64\n").as_deref(), Some("6.12.48+deb13-amd64"));
        assert_eq!(kernel("\n"), None);
        assert_eq!(kernel(""), None);
    }

    #[test]
    fn processors_are_counted_on_every_architecture() {
        let x86 = "processor\t: 0\nvendor_id\t: X\nmodel\t\t: 85\nmodel name\t: Fast 9\n\n\
                   processor\t: 1\nmodel name\t: Fast 9\n";
        let arm = "processor\t: 0\nCPU part\t: 0xd08\n\nprocessor\t: 1\n\n\
                   Hardware\t: BCM2835\nModel\t\t: Raspberry Pi 4\n";
        let mips = "system type\t: x\nprocessor\t: 0\ncpu model\t: MIPS 24Kc V7.4\n";
        let power = "processor\t: 0\ncpu\t\t: POWER9\n";
        let s390 = "# processors    : 2\nprocessor 0: version = FF\nprocessor 1: version = FF\n";
        let nameless = "processor: 0\nmodel name:\n";
        for (text, count, model) in [
            (x86, 2, Some("Fast 9")),
            (arm, 2, Some("Raspberry Pi 4")),
            (mips, 1, Some("MIPS 24Kc V7.4")),
            (power, 1, Some("POWER9")),
            (s390, 2, None),
            (nameless, 1, None),
        ] {
            let model = model.map(str::to_owned);
            assert_eq!(processors(text), Some(Processors { count, model }), "{text}");
        }
        assert_eq!(processors(""), None);
        assert_eq!(processors("hello\nProcessor : x\n"), None);
    }

    #[test]
    fn memory_is_read_in_bytes() {
        for (text, total_bytes, available_bytes) in [
            ("MemTotal: 2 kB\nMemFree: 0 kB\nMemAvailable: 1 kB\n", 2048, Some(1024)),
            ("MemTotal:\t 2 kB\nMemFree:\t 1 kB\n", 2048, Some(1024)),
            ("MemTotal: 2 kB\n", 2048, None),
        ] {
            assert_eq!(memory(text), Some(Memory { total_bytes, available_bytes }), "{text}");
        }
        for text in [
            "",
            "MemFree: 1 kB",
            "MemTotal: x kB",
            "MemTotal: 2",
            "MemTotal: 99999999999999999999 kB",
            "MemTotal: 18446744073709551615 kB",
        ] {
            assert_eq!(memory(text), None, "{text}");
        }
    }

    #[test]
    fn uptime_is_read_in_whole_seconds() {
        for (text, want) in [
            ("350735.47 234388.90\n", Some(350_735)),
            ("12\n", Some(12)),
            ("", None),
            ("-1.0 2.0", None),
            ("soon", None),
        ] {
            assert_eq!(uptime_seconds(text), want, "{text:?}");
        }
    }
}
