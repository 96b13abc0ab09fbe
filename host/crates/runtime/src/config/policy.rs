//! Where the policy files are, one per tier, and what they are checked against.

use std::path::{Path, PathBuf};

use sallyport_policy::PolicyTier;

use super::{ConfigFlags, Env, ForeignFile, HostPaths, project_files};

/// The administrator's policy. No variable and no flag moves it, because a user could then escape
/// it.
const ADMIN_FILE: &str = "/etc/sallyport/policy.toml";

/// The folder of the administrator's policy.
const ADMIN_FOLDER: &str = "/etc/sallyport";

/// A project's policy, relative to the project's folder.
const PROJECT_FILE: &str = ".sallyport/policy.toml";

/// The location of one tier's policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyPath {
    /// The tier of the file.
    pub tier: PolicyTier,
    /// The file; it may be missing unless it was named.
    pub path: PathBuf,
    /// Whether the file was named on the command line. Such a file must exist at the start.
    pub is_named: bool,
}

/// The policy files, and what they are checked against besides their own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyFiles {
    /// One per tier, the administrator's first.
    pub files: Vec<PolicyPath>,
    /// The host's own files and folders.
    pub host_files: Vec<PathBuf>,
    /// The user's home folder.
    pub home: Option<PathBuf>,
    /// Project files, policy or configuration, that are ignored as possibly another user's.
    pub foreign: Vec<ForeignFile>,
}

impl PolicyFiles {
    pub(super) fn find(
        flags: &ConfigFlags,
        env: &Env,
        paths: &HostPaths,
        mut host_files: Vec<PathBuf>,
    ) -> Self {
        // Where the host runs as root, a plugin could place the file.
        host_files.push(ADMIN_FOLDER.into());
        let user = flags.policy.clone().unwrap_or_else(|| paths.policy_file());
        let mut files = vec![
            PolicyPath { tier: PolicyTier::Admin, path: ADMIN_FILE.into(), is_named: false },
            PolicyPath { tier: PolicyTier::User, path: user, is_named: flags.policy.is_some() },
        ];
        // Without a working folder there cannot be a project.
        let folder = flags.folder.clone().or_else(|| std::env::current_dir().ok());
        let (project, foreign) =
            folder.map_or_else(Default::default, |at| find_project_policy(&at));
        if let Some(path) = project {
            files.push(PolicyPath { tier: PolicyTier::Project, path, is_named: false });
        }
        Self { files, host_files, home: env.home_dir(), foreign }
    }

    /// The user's policy file.
    pub fn user_file(&self) -> &Path {
        let user = self.files.iter().find(|file| file.tier == PolicyTier::User);
        user.map_or(Path::new("policy.toml"), |file| &file.path)
    }
}

/// The policy of the nearest project around a folder. Without one, the path in the folder itself is
/// watched, so that a new file takes effect when it appears, unless another user could place one
/// there.
fn find_project_policy(folder: &Path) -> (Option<PathBuf>, Vec<ForeignFile>) {
    let (found, foreign) = project_files::find_project_file(folder, PROJECT_FILE, |_| false);
    let new_file = || project_files::can_be_project(folder).then(|| folder.join(PROJECT_FILE));
    (found.or_else(new_file), foreign)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_project_counts() {
        let folder = tempfile::tempdir().unwrap();
        let (outer, inner) = (folder.path().join("a"), folder.path().join("a/b/c"));
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(find_project_policy(&inner).0, Some(inner.join(PROJECT_FILE)));
        std::fs::create_dir(outer.join(".sallyport")).unwrap();
        std::fs::write(outer.join(PROJECT_FILE), "").unwrap();
        assert_eq!(find_project_policy(&inner).0, Some(outer.join(PROJECT_FILE)));
    }

    #[test]
    fn nothing_moves_the_administrators_file() {
        let env = Env::from_pairs([("SALLYPORT_HOME", "/s"), ("HOME", "/h")]);
        let flags = ConfigFlags { policy: Some("/own.toml".into()), ..ConfigFlags::default() };
        let found = PolicyFiles::find(&flags, &env, &HostPaths::new(&env).unwrap(), Vec::new());
        assert_eq!(found.files[0].path, Path::new(ADMIN_FILE));
        assert_eq!(found.user_file(), Path::new("/own.toml"));
        assert!(found.files[1].is_named && !found.files[0].is_named);
        assert!(found.files[0].path.starts_with(ADMIN_FOLDER));
        assert!(found.host_files.contains(&ADMIN_FOLDER.into()));
    }
}
