//! `sallyport policy grant`: adds grants and rules for a plugin, after showing the change.

use sallyport_contract::PluginName;
use sallyport_policy::{
    HintedError, Policy, PolicyRemarkKind, RuleText, SecretName,
    edit::{self, EditError, GrantAddition, RequestedGrants},
};
use sallyport_runtime::{
    config::HostSettings,
    registry::{PluginSelection, RegisteredPlugin, Registry},
};

use super::{
    PluginTarget,
    args::GrantArgs,
    change::{PolicyChangeRequest, change_policy, warn_of_missing_paths},
    check::installed_plugins,
    grant_args::additions_from_args,
};
use crate::cli::{
    exit::{CommandFailure, ExitStatus},
    output::CliOutput,
    setup,
};

/// What a command adds to the policy.
struct PolicyAdditions {
    grants: Vec<GrantAddition>,
    rules: Vec<RuleText>,
    /// Limits for all plugins together.
    shared_limits: Vec<(String, String)>,
    /// Granted secrets of which no policy says where they are.
    unsourced_secrets: Vec<SecretName>,
}

pub(super) async fn run_grant_command(
    settings: &HostSettings,
    args: &GrantArgs,
    out: &CliOutput,
) -> Result<ExitStatus, CommandFailure> {
    let plugin_target = PluginTarget::parse(&args.plugin)?;
    let mut additions = PolicyAdditions::from_args(&plugin_target, args)?;
    if needs_registry(args) {
        let selection = match &plugin_target {
            PluginTarget::One(plugin) => PluginSelection::Only(plugin.clone()),
            PluginTarget::Several(_) => PluginSelection::All,
        };
        let registry = setup::load_selected_registry(settings, selection, out).await?;
        let checked = additions.check(&plugin_target, settings, &registry, args, out);
        registry.shutdown().await;
        checked?;
    }
    if additions.is_empty() {
        return Ok(ExitStatus::Done);
    }
    warn_of_missing_paths(settings, &additions.grants, out);
    let request = PolicyChangeRequest {
        plugin: plugin_target.as_str(),
        description: format!("grants {}", additions.description()),
        is_confirmed: args.yes,
    };
    let is_written =
        change_policy(settings, &request, |text| additions.apply(&plugin_target, text), out)?;
    for name in additions.unsourced_secrets.iter().filter(|_| is_written) {
        out.print_hint(&format!("store the value of {name}: sallyport secret set {name}"));
    }
    Ok(ExitStatus::Done)
}

/// Whether the installed plugins have to be looked at.
fn needs_registry(args: &GrantArgs) -> bool {
    !args.force || args.digest || args.requested
}

impl PolicyAdditions {
    fn from_args(plugin_target: &PluginTarget, args: &GrantArgs) -> Result<Self, CommandFailure> {
        let rule = |tool: &String| RuleText {
            net: args.rule_net.clone(),
            page: args.rule_page.clone(),
            ..RuleText::new_allow(plugin_target.tool_pattern(tool))
        };
        let mut grants = additions_from_args(args)?;
        let mut shared_limits = Vec::new();
        if let PluginTarget::Several(_) = plugin_target {
            check_several(plugin_target, args, &grants)?;
            shared_limits = grants.drain(..).filter_map(limit_pair).collect();
        }
        let rules = args.allow.iter().map(rule).collect();
        Ok(Self { grants, rules, shared_limits, unsourced_secrets: Vec::new() })
    }

    fn is_empty(&self) -> bool {
        self.grants.is_empty() && self.rules.is_empty() && self.shared_limits.is_empty()
    }

    /// Refuses what could not have the intended effect, and adds what the plugin requests.
    fn check(
        &mut self,
        plugin_target: &PluginTarget,
        settings: &HostSettings,
        registry: &Registry,
        args: &GrantArgs,
        out: &CliOutput,
    ) -> Result<(), CommandFailure> {
        let plugin = match plugin_target {
            PluginTarget::One(plugin) => {
                Some(registry.find_plugin(plugin.as_str()).map_err(CommandFailure::from)?)
            }
            PluginTarget::Several(_) => None,
        };
        if let Some(plugin) = plugin {
            self.check_grants(plugin, settings, args.force)?;
            if args.requested {
                self.add_requested(plugin, out);
            }
            self.bind_rules(plugin, args.digest);
            self.find_unsourced_secrets(registry, args.force);
        }
        self.check_rules(registry, args.force, out)
    }

    /// Refuses grants that could not have the intended effect.
    fn check_grants(
        &mut self,
        plugin: &RegisteredPlugin,
        settings: &HostSettings,
        is_forced: bool,
    ) -> Result<(), CommandFailure> {
        if is_forced {
            return Ok(());
        }
        let own = settings.plugin_settings.get(plugin.name()).cloned().unwrap_or_default();
        let home = settings.policy.home.as_deref();
        for addition in &mut self.grants {
            let checked = addition.clone().check_against_manifest(plugin.manifest(), &own, home);
            let (usable, objections) = checked.map_err(|error| edit_failure(&error))?;
            if let Some(first) = objections.first() {
                let all: Vec<String> = objections.iter().map(ToString::to_string).collect();
                let message = format!("{}: {}", plugin.name(), all.join("; "));
                return Err(no_effect_failure(message, first.suggested_fix()));
            }
            *addition = usable;
        }
        Ok(())
    }

    /// Adds all that the manifest requests and the policy lacks, and shows it.
    fn add_requested(&mut self, plugin: &RegisteredPlugin, out: &CliOutput) {
        let grant = plugin.grant();
        let RequestedGrants { additions, left_open } = grant.requested_grants();
        let name = plugin.name();
        if additions.is_empty() && left_open.is_empty() {
            out.print_note(&format!("{name} is granted all that it requests."));
        }
        for addition in &additions {
            let reasons = grant.request_reasons(addition).join("; ");
            out.print_note(&format!("{name} requests {addition}: {reasons}"));
        }
        for request in &left_open {
            out.print_note(&match request.grant_flags() {
                Some(flags) => format!(
                    "Left out, because only you can choose: {request}. To grant it: sallyport policy \
                     grant {name} {flags}"
                ),
                None => format!("Left out, because the policy denies it: {request}"),
            });
        }
        for addition in additions {
            if !self.grants.contains(&addition) {
                self.grants.push(addition);
            }
        }
    }

    /// Binds the rules to the digest of the installed component.
    fn bind_rules(&mut self, plugin: &RegisteredPlugin, is_bound: bool) {
        if is_bound {
            let digest = plugin.digest().to_owned();
            self.rules.iter_mut().for_each(|rule| rule.digest = Some(digest.clone()));
        }
    }

    /// Finds granted secrets without a source, which are then added to the system's keyring.
    fn find_unsourced_secrets(&mut self, registry: &Registry, is_forced: bool) {
        let policy = registry.gate().policy_store.current().policy;
        let names = self.grants.iter().filter_map(|addition| match addition {
            GrantAddition::Secret(secret) => secret.name.parse::<SecretName>().ok(),
            _ => None,
        });
        let is_unknown = |name: &SecretName| !is_forced && policy.secret_source(name).is_none();
        self.unsourced_secrets = names.filter(is_unknown).collect();
    }

    /// Refuses a rule that matches nothing installed, and warns of one that matches too much.
    fn check_rules(
        &self,
        registry: &Registry,
        is_forced: bool,
        out: &CliOutput,
    ) -> Result<(), CommandFailure> {
        for rule in &self.rules {
            // Check the rule in a policy of its own, so that all remarks are about it.
            let rule_policy =
                Policy::from_user_file("policy", &rule.to_string(), None).map_err(|error| {
                    CommandFailure {
                        hint: error.hint,
                        ..CommandFailure::new(ExitStatus::Usage, error.message)
                    }
                })?;
            let (useless, wide): (Vec<_>, Vec<_>) = rule_policy
                .find_remarks(&installed_plugins(registry))
                .into_iter()
                .partition(|remark| remark.kind == PolicyRemarkKind::Useless);
            wide.iter()
                .for_each(|remark| out.print_warning(&format!("the rule {}", remark.message)));
            if let Some(remark) = useless.first().filter(|_| !is_forced) {
                return Err(no_effect_failure(remark.message.clone(), None));
            }
        }
        Ok(())
    }

    /// The additions in a few words, for the record.
    fn description(&self) -> String {
        let grants = self.grants.iter().map(ToString::to_string);
        let limits = self.shared_limits.iter();
        let limits = limits.map(|(key, value)| format!("the limit {key} = {value} to all plugins"));
        let rules = self.rules.iter().map(|rule| format!("calls of {}", rule.tool));
        grants.chain(limits).chain(rules).collect::<Vec<_>>().join(", ")
    }

    /// Returns the text of the policy with all additions.
    fn apply(&self, plugin_target: &PluginTarget, text: &str) -> Result<String, EditError> {
        let mut text = text.to_owned();
        if let PluginTarget::One(plugin) = plugin_target {
            text = self.add_grants(plugin, text)?;
        }
        for (key, value) in &self.shared_limits {
            text = edit::set_shared_limit(&text, key, value)?;
        }
        self.rules.iter().try_fold(text, |text, rule| edit::add_rule(&text, rule))
    }

    fn add_grants(&self, plugin: &PluginName, text: String) -> Result<String, EditError> {
        let text = edit::add_grants(&text, plugin, &self.grants)?;
        let secrets = self.unsourced_secrets.iter();
        secrets.clone().try_fold(text, |text, name| edit::add_secret_source(&text, name))
    }
}

/// The key and the value of a limit.
fn limit_pair(addition: GrantAddition) -> Option<(String, String)> {
    match addition {
        GrantAddition::Limit { key, value } => Some((key, value)),
        _ => None,
    }
}

/// Refuses what cannot be granted to several plugins together.
fn check_several(
    plugin_target: &PluginTarget,
    args: &GrantArgs,
    grants: &[GrantAddition],
) -> Result<(), CommandFailure> {
    if args.digest {
        let failure = CommandFailure::new(ExitStatus::Usage, "--digest needs one plugin");
        return Err(failure.with_hint("name one plugin, or leave out --digest"));
    }
    let is_limit = |addition: &GrantAddition| matches!(addition, GrantAddition::Limit { .. });
    let are_shared = plugin_target.is_all_plugins() && grants.iter().all(is_limit);
    if args.requested || !(grants.is_empty() || are_shared) {
        let message = "only calls, and limits for all plugins, can be granted to several plugins";
        let failure = CommandFailure::new(ExitStatus::Usage, message);
        return Err(failure.with_hint("name one plugin, or pass --allow TOOL"));
    }
    Ok(())
}

fn edit_failure(error: &EditError) -> CommandFailure {
    CommandFailure {
        hint: error.hint(),
        ..CommandFailure::new(ExitStatus::Usage, error.to_string())
    }
}

/// The failure for an entry that would have no effect.
fn no_effect_failure(message: String, remedy: Option<String>) -> CommandFailure {
    let otherwise = "pass --force to write it anyway";
    let hint = remedy.map_or(otherwise.to_owned(), |remedy| format!("{remedy}; {otherwise}"));
    CommandFailure::new(ExitStatus::Usage, message).with_hint(hint)
}
