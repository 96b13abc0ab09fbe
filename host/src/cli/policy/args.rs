//! The flags of the policy commands, parsed by clap.

use clap::{ArgGroup, Args as ClapArgs, Subcommand, ValueEnum};
use sallyport_contract::Decision;
use sallyport_policy::{Capability, edit::GrantAddition};
use url::Url;

use crate::cli::{args::OutputArgs, name_kind::NameKind};

/// Arguments of a call, if none are given.
pub(super) const NO_ARGUMENTS: &str = "{}";

/// Value of `--to-private` without a range.
pub(super) const OWN_RANGE: &str = "own";

#[derive(Debug, ClapArgs)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(in crate::cli) struct PolicyArgs {
    #[command(subcommand)]
    pub(super) command: Option<PolicyCommand>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum PolicyCommand {
    /// Check the policy: mistakes, grants, and entries without effect
    Check(OutputArgs),
    /// Explain what the policy decides about a call, a request, a path or a page
    Explain(Box<ExplainArgs>),
    /// Run the examples of all rules
    Test(OutputArgs),
    /// Add a grant, after showing the change
    Grant(Box<GrantArgs>),
    /// Remove a grant, after showing the change
    Revoke(Box<RevokeArgs>),
    /// Run a command, and grant what a plugin was refused, until nothing is refused
    Learn(LearnArgs),
}

#[derive(Debug, ClapArgs)]
pub(in crate::cli) struct LearnArgs {
    /// The plugin
    #[arg(add = NameKind::Plugin)]
    pub(in crate::cli) plugin: String,

    /// Accept every proposal
    #[arg(long)]
    pub(in crate::cli) yes: bool,

    /// A command of this program: call weather.get_weather '{"location":"Paris"}'
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(in crate::cli) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
#[command(group(
    ArgGroup::new("access").args(["net", "read", "write", "page", "capability"])
))]
pub(in crate::cli) struct ExplainArgs {
    /// A tool, or a run in a role such as PLUGIN.role:timer; a plugin alone when the question is
    /// about something else than a call
    #[arg(value_name = "PLUGIN[.TOOL]", add = NameKind::PluginOrTool)]
    pub(super) target: String,

    /// The arguments of the call, as a JSON object
    #[arg(value_name = "JSON", default_value = NO_ARGUMENTS)]
    pub(super) arguments: String,

    /// May it send this request? "GET https://example.org/path"
    #[arg(long, value_name = "METHOD URL")]
    pub(super) net: Option<String>,

    /// May it read this file? By its path on this machine, or as the plugin sees it
    #[arg(long, value_name = "PATH")]
    pub(super) read: Option<String>,

    /// May it change this file?
    #[arg(long, value_name = "PATH")]
    pub(super) write: Option<String>,

    /// May it open this page in the browser? https://example.org/page
    #[arg(long = "open-url", value_name = "URL")]
    pub(super) page: Option<Url>,

    /// Does it hold this capability?
    #[arg(long, value_name = "NAME", value_parser = capability)]
    pub(super) capability: Option<Capability>,

    /// For this user, whose groups count; the user of the terminal without it
    #[arg(long, value_name = "USER")]
    pub(super) user: Option<String>,

    /// With --user: as if the identity server put the user into this group only; may be repeated
    #[arg(long = "login-group", value_name = "GROUP", requires = "user")]
    pub(super) login_groups: Vec<String>,

    #[command(flatten)]
    pub(super) output: OutputArgs,
}

#[derive(Debug, ClapArgs)]
#[command(group(
    ArgGroup::new("what")
        .args(["net", "read", "write", "env", "secret", "capability", "page", "package", "scratch"])
        .args(["listen", "limit", "allow", "grant", "requested"])
        .required(true)
        .multiple(true)
))]
#[command(group(ArgGroup::new("folder").args(["read", "write"]).multiple(true)))]
#[command(group(ArgGroup::new("mounted").args(["read", "write", "scratch"]).multiple(true)))]
#[command(group(ArgGroup::new("way").args(["to", "reveal"])))]
pub(in crate::cli) struct GrantArgs {
    /// The plugin; with --allow a pattern such as mail-*, with --limit * for all plugins together
    #[arg(add = NameKind::Plugin)]
    pub(super) plugin: String,

    /// All that the plugin requests and is not granted yet, after showing it; a folder that only you
    /// can choose is left out
    #[arg(long)]
    pub(super) requested: bool,

    /// Requests to the network: "GET https://example.org/v1/**"
    #[arg(long, value_name = "PATTERN")]
    pub(super) net: Vec<String>,
    /// Ask for approval of each such request
    #[arg(long, requires = "net")]
    pub(super) ask: bool,
    /// Allow private addresses too: this range, or those of the host itself
    #[arg(
        long, requires = "net", value_name = "RANGE", num_args = 0..=1,
        default_missing_value = OWN_RANGE
    )]
    pub(super) to_private: Vec<String>,

    /// A folder or file to read
    #[arg(long, value_name = "PATH")]
    pub(super) read: Vec<String>,
    /// A folder or file to read and change
    #[arg(long, value_name = "PATH")]
    pub(super) write: Vec<String>,
    /// Where the plugin sees it
    #[arg(long, requires = "mounted", value_name = "PATH")]
    pub(super) mount: Option<String>,
    /// Leave out what this pattern names; may be given several times
    #[arg(long, requires = "folder", value_name = "GLOB")]
    pub(super) deny: Vec<String>,
    /// How much it may grow: 100MiB
    #[arg(long, requires = "mounted", value_name = "SIZE")]
    pub(super) quota: Option<String>,
    /// Confirm that a guarded folder is intended
    #[arg(long, requires = "folder")]
    pub(super) sensitive: bool,

    /// An environment variable
    #[arg(long, value_name = "NAME")]
    pub(super) env: Vec<String>,

    /// A secret; --to has the host put it into requests, --reveal hands it to the plugin
    #[arg(long, value_name = "NAME", requires = "way")]
    pub(super) secret: Vec<String>,
    /// The origin that the secret is sent to: https://api.example.org
    #[arg(long, requires = "secret", requires = "header", value_name = "ORIGIN")]
    pub(super) to: Option<String>,
    /// The header that the secret is sent in
    #[arg(long, requires = "to", value_name = "NAME")]
    pub(super) header: Option<String>,
    /// The value of the header, with {} for the secret: "Bearer {}"
    #[arg(long, requires = "to", value_name = "TEXT")]
    pub(super) format: Option<String>,
    /// Let the plugin read the secret
    #[arg(long, requires = "secret")]
    pub(super) reveal: bool,

    /// Any grant by its key in the policy: env=TZ, state=true, state.quota=1MiB, packages=six
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) grant: Vec<GrantAddition>,
    /// A capability: state, schedule, notify, progress, open-url, ui, process
    #[arg(long, value_name = "NAME", value_parser = capability)]
    pub(super) capability: Vec<Capability>,
    /// A setting of the capability, such as quota=1MiB; replaces the current one
    #[arg(long, requires = "capability", value_name = "KEY=VALUE")]
    pub(super) set: Option<String>,
    /// Pages that may be opened in the browser: "https://*.example.org/**"
    #[arg(long, value_name = "PATTERN")]
    pub(super) page: Vec<String>,
    /// A package that may be fetched: six, six==1.17.0, or * for all
    #[arg(long, value_name = "PACKAGE")]
    pub(super) package: Vec<String>,
    /// A temporary file system of the session
    #[arg(long, value_name = "NAME")]
    pub(super) scratch: Vec<String>,
    /// Something to listen to: http://127.0.0.1:8077/hooks, or stdin
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Vec<String>,
    /// Other machines may reach the address
    #[arg(long, requires = "listen")]
    pub(super) public: bool,

    /// A limit, such as time=10s; replaces the current one
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) limit: Vec<String>,

    /// Allow calls of this tool without approval; * matches any characters, and alone all tools
    #[arg(long, value_name = "TOOL")]
    pub(super) allow: Vec<String>,
    /// Only these requests of it: "GET https://example.org/v1"
    #[arg(long, requires = "allow", value_name = "PATTERN")]
    pub(super) rule_net: Option<String>,
    /// Only opening these pages
    #[arg(long, requires = "allow", conflicts_with = "rule_net", value_name = "PATTERN")]
    pub(super) rule_page: Option<String>,
    /// Only for the build of the component that is installed now
    #[arg(long, requires = "allow")]
    pub(super) digest: bool,

    /// Write it even if the plugin is not installed, does not request it, or could not use it
    #[arg(long)]
    pub(super) force: bool,

    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}

#[derive(Debug, ClapArgs)]
#[command(group(
    ArgGroup::new("what")
        .args(["net", "deny", "path", "env", "secret", "capability", "page", "package", "scratch"])
        .args(["listen", "limit", "rule", "grant", "all"])
        .required(true)
))]
pub(in crate::cli) struct RevokeArgs {
    /// The plugin; with --rule a pattern such as mail-*, with --limit * for all plugins together
    #[arg(add = NameKind::Plugin)]
    pub(super) plugin: String,

    /// The entry that allows these requests, as the policy writes them
    #[arg(long, value_name = "PATTERN")]
    pub(super) net: Option<String>,
    /// The entry that denies these requests
    #[arg(long, value_name = "PATTERN")]
    pub(super) deny: Option<String>,
    /// The folder or file, by its path on this machine or as the plugin sees it
    #[arg(long, value_name = "PATH")]
    pub(super) path: Option<String>,
    /// The environment variable
    #[arg(long, value_name = "NAME")]
    pub(super) env: Option<String>,
    /// The secret
    #[arg(long, value_name = "NAME")]
    pub(super) secret: Option<String>,
    /// The capability, with all that is granted of it
    #[arg(long, value_name = "NAME", value_parser = capability)]
    pub(super) capability: Option<Capability>,
    /// The pages that may be opened, as the policy writes them
    #[arg(long, value_name = "PATTERN")]
    pub(super) page: Option<String>,
    /// The package, as the policy writes it
    #[arg(long, value_name = "PACKAGE")]
    pub(super) package: Option<String>,
    /// The temporary file system, by its name
    #[arg(long, value_name = "NAME")]
    pub(super) scratch: Option<String>,
    /// The address to listen to, or stdin
    #[arg(long, value_name = "ADDRESS")]
    pub(super) listen: Option<String>,
    /// Any grant by its key in the policy, as `policy grant --grant` adds it: env=TZ, state=true
    #[arg(long, value_name = "KEY=VALUE")]
    pub(super) grant: Option<GrantAddition>,
    /// The limit; the default applies again
    #[arg(long, value_name = "KEY")]
    pub(super) limit: Option<String>,
    /// The rules about calling this tool; * for those about all of its tools
    #[arg(long, value_name = "TOOL")]
    pub(super) rule: Option<String>,
    /// Only the rules about these requests of it
    #[arg(long, requires = "rule", value_name = "PATTERN")]
    pub(super) rule_net: Option<String>,
    /// Only the rules about opening these pages
    #[arg(long, requires = "rule", conflicts_with = "rule_net", value_name = "PATTERN")]
    pub(super) rule_page: Option<String>,
    /// Only the rules that say this
    #[arg(long, requires = "rule", value_enum)]
    pub(super) decision: Option<DecisionArg>,
    /// The plugin's whole table; rules stay
    #[arg(long)]
    pub(super) all: bool,

    /// Do not ask
    #[arg(long)]
    pub(super) yes: bool,
}

/// The capabilities whose items have flags of their own: `--page`, `--package`, `--scratch`,
/// `--listen`.
const ITEM_CAPABILITIES: [&str; 4] = ["open-url", "packages", "scratch", "listen"];

impl GrantArgs {
    /// The items of capabilities that flags name.
    pub(super) fn capability_items(&self) -> impl Iterator<Item = (Capability, &str)> {
        let flags = [&self.page, &self.package, &self.scratch, &self.listen];
        let named = ITEM_CAPABILITIES.into_iter().zip(flags);
        let named = named.filter_map(|(key, items)| Some((Capability::from_name(key)?, items)));
        named.flat_map(|(of, items)| items.iter().map(move |item| (of, item.as_str())))
    }
}

impl RevokeArgs {
    /// The item of a capability that a flag names, if one does.
    pub(super) fn capability_item(&self) -> Option<(Capability, &str)> {
        let flags = [&self.page, &self.package, &self.scratch, &self.listen];
        let mut named = ITEM_CAPABILITIES.into_iter().zip(flags);
        named.find_map(|(key, flag)| Some((Capability::from_name(key)?, flag.as_deref()?)))
    }
}

/// The decision of a rule.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(super) enum DecisionArg {
    Allow,
    Ask,
    Deny,
}

impl From<DecisionArg> for Decision {
    fn from(word: DecisionArg) -> Self {
        match word {
            DecisionArg::Allow => Self::Allow,
            DecisionArg::Ask => Self::Ask,
            DecisionArg::Deny => Self::Deny,
        }
    }
}

/// Parses the name of a capability.
fn capability(text: &str) -> Result<Capability, String> {
    Capability::from_name(text).ok_or_else(|| {
        let words: Vec<&str> = Capability::ALL.into_iter().map(Capability::as_str).collect();
        format!("write one of {}", words.join(", "))
    })
}
