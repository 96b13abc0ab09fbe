//! Gives back the memory that holds the parts of the program's file that only its start has used.
//!
//! Such pages are the file's own and unchanged, so the kernel keeps them in its cache: a part that is
//! needed again costs a page fault and no read. Without this, they count as the server's memory for as
//! long as it runs.

use std::{fs, io, ops::Range, time::Duration};

use rustix::mm::{Advice, madvise};

/// After this time, a server has answered what clients ask first.
const START_LASTS: Duration = Duration::from_secs(1);

/// Waits until the start is over, and gives back its pages. Nothing depends on its success.
pub(super) async fn release_start_pages() {
    tokio::time::sleep(START_LASTS).await;
    if let Err(error) = release_pages() {
        tracing::debug!(%error, "the pages of the start stay in memory");
    }
}

fn release_pages() -> io::Result<()> {
    let maps = fs::read_to_string("/proc/self/maps")?;
    read_only_parts(&maps, release_pages as fn() -> io::Result<()> as usize)
        .into_iter()
        .try_for_each(release_part)
}

#[expect(unsafe_code, reason = "advice about memory has no other interface")]
fn release_part(part: Range<usize>) -> io::Result<()> {
    let start = std::ptr::with_exposed_provenance_mut(part.start);
    // SAFETY: the range is one mapping of the program's own file that nobody has ever been able to
    // write to, so what is read from the file again is the same. It stays mapped throughout.
    unsafe { madvise(start, part.len(), Advice::LinuxDontNeed) }.map_err(Into::into)
}

/// Returns the parts of the program's file that were never writable: the code, which holds `code`, and
/// what lies before it. What lies after it can be a table of addresses that the loader has filled in,
/// and looks the same in `maps`, the text of `/proc/self/maps`.
fn read_only_parts(maps: &str, code: usize) -> Vec<Range<usize>> {
    let mappings: Vec<Mapping> = maps.lines().filter_map(Mapping::parse).collect();
    let Some(holder) = mappings.iter().find(|mapping| mapping.range.contains(&code)) else {
        return Vec::new();
    };
    let is_ours = |mapping: &&Mapping| {
        mapping.file == holder.file
            && mapping.range.start <= holder.range.start
            && mapping.rights.starts_with('r')
            && !mapping.rights.contains('w')
    };
    mappings.iter().filter(is_ours).map(|mapping| mapping.range.clone()).collect()
}

/// One line of `/proc/self/maps`.
struct Mapping<'a> {
    range: Range<usize>,
    rights: &'a str,
    /// Device and inode of the file.
    file: (&'a str, &'a str),
}

impl<'a> Mapping<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (start, end) = fields.next()?.split_once('-')?;
        let rights = fields.next()?;
        let _offset = fields.next()?;
        let file = (fields.next()?, fields.next()?);
        let [start, end] = [start, end].map(|number| usize::from_str_radix(number, 16));
        Some(Self { range: start.ok()?..end.ok()?, rights, file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOADED: &str = "\
1000-3000 r--p 00000000 fd:00 42 /usr/bin/sallyport
3000-9000 r-xp 00002000 fd:00 42 /usr/bin/sallyport
9000-a000 r--p 00008000 fd:00 42 /usr/bin/sallyport
a000-b000 rw-p 00009000 fd:00 42 /usr/bin/sallyport
b000-c000 rw-p 00000000 00:00 0 [heap]
d000-e000 r-xp 00000000 fd:00 43 /usr/lib/libc.so.6
";

    fn check(maps: &str, code: usize, expected: &str) {
        let parts = read_only_parts(maps, code);
        let ends: Vec<_> =
            parts.iter().map(|part| format!("{:x}-{:x}", part.start, part.end)).collect();
        assert_eq!(ends.join(" "), expected, "{maps} {code:x}");
    }

    #[test]
    fn only_parts_of_the_file_that_were_never_writable_are_given_back() {
        check(LOADED, 0x3000, "1000-3000 3000-9000");
        check(LOADED, 0x8fff, "1000-3000 3000-9000");
        // Writable parts stay, wherever they are.
        check(&LOADED.replace("1000-3000 r--p", "1000-3000 rw-p"), 0x4000, "3000-9000");
        // Another file, no file, no mapping, no table.
        check(LOADED, 0xd000, "d000-e000");
        check(LOADED, 0xc000, "");
        check("", 0x3000, "");
        check("1000 r-xp\nzz-1 r-xp 0 fd:00 42\n", 0x1000, "");
    }

    #[test]
    fn a_program_works_on_after_its_pages_were_given_back() {
        release_pages().unwrap();
        assert_eq!(format!("{:?}", "as before"), "\"as before\"");
    }
}
