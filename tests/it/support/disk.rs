//! A small disk of its own, which fills up and can be made read-only.

use std::{
    fs::{self, File},
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

/// Bytes by which it is filled.
const PIECE_BYTES: usize = 4096;

/// A small disk in the place of a folder, until it is dropped.
pub(crate) struct Disk(PathBuf);

impl Disk {
    /// Mounts an empty one. `None`, and a word about it, where this user may not mount.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says so")]
    pub(crate) fn mount(folder: &Path, bytes_max: u64) -> Option<Self> {
        fs::create_dir_all(folder).unwrap();
        let options = format!("size={bytes_max},mode=0700");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &options, "none"])
            .arg(folder)
            .output()
            .is_ok_and(|output| output.status.success());
        if !mounted {
            println!("skipped: only root may mount a small disk");
        }
        mounted.then(|| Self(folder.to_owned()))
    }

    /// Fills it but for some bytes.
    pub(crate) fn fill(&self, left_bytes: u64) {
        let mut filler = File::create(self.filler()).unwrap();
        while filler.write_all(&[1; PIECE_BYTES]).is_ok() {}
        let full = filler.metadata().unwrap().len();
        filler.set_len(full.saturating_sub(left_bytes)).unwrap();
    }

    /// Makes room again.
    pub(crate) fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }

    /// Lets nobody write to it, or everybody again.
    pub(crate) fn allow_writes(&self, is_allowed: bool) {
        let options = if is_allowed { "remount,rw" } else { "remount,ro" };
        let remounted = Command::new("mount").args(["-o", options]).arg(&self.0).status();
        assert!(remounted.unwrap().success());
    }

    fn filler(&self) -> PathBuf {
        self.0.join("filler")
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}
