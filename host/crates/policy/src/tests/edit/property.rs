//! Properties of any edit of any policy file.

use std::collections::BTreeSet;

use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::{Manifest, edit::add_rule, table::PluginTable};

/// The content of a plugin's table in a random policy, and the notations in which it is written.
#[derive(Debug, Clone)]
struct Table {
    net: Vec<&'static str>,
    env: Vec<&'static str>,
    fs: Vec<&'static str>,
    limits: Vec<&'static str>,
    capabilities: Vec<&'static str>,
    list: List,
}

/// The notation of a random list.
#[derive(Debug, Clone, Copy)]
enum List {
    OneLine,
    TrailingComma,
    Lines,
    LinesWithoutLastComma,
    CommasFirst,
}

/// The notation of the tables of a random policy.
#[derive(Debug, Clone, Copy)]
enum Style {
    Headers,
    DottedKeys,
    SuperTable,
    BracesInTable,
    Braces,
}

const STYLES: [Style; 5] =
    [Style::Headers, Style::DottedKeys, Style::SuperTable, Style::BracesInTable, Style::Braces];
const LISTS: [List; 5] = [
    List::OneLine,
    List::TrailingComma,
    List::Lines,
    List::LinesWithoutLastComma,
    List::CommasFirst,
];
const NETS: [&str; 5] = [
    "'GET https://a.io/**'",
    "{ allow = \"PUT https://b.io/\" }",
    "{ deny = '* https://**' }",
    "{ allow = 'GET http://localhost:8080/', to-private = true }",
    "'* https://*.c.io/x'",
];
const ENVS: [&str; 4] = ["'TZ'", "\"LANG\"", "'''HOME'''", "'A_1'"];
const PATHS: [&str; 4] = ["~/notes", "/a", "/é # b", "/c/\\\"d\\\""];
const LIMITS: [&str; 3] = ["time = '1s'", "log = 7", "memory = \"64MiB\""];

const CAPABILITIES: [&str; 6] = [
    "state = true",
    "schedule = { timers = 7 }",
    "open-url = { allow = ['https://a.io/**'], decision = \"allow\" }",
    "packages = [ 'six', \"a==1.0\" ]",
    "scratch = [{ name = 's', mount = '/s' }]",
    "listen = ['stdin', { at = 'ws://0.0.0.0:80/a', public = true }]",
];

impl List {
    fn write(self, entries: &[String]) -> String {
        let comment = "# one, two ] }";
        let joined = entries.join(", ");
        if entries.is_empty() {
            return format!("[ {} ]", if matches!(self, Self::Lines) { "# none\n" } else { "" });
        }
        match self {
            Self::OneLine => format!("[{joined}]"),
            Self::TrailingComma => format!("[ {joined}, ]"),
            Self::Lines => format!("[ {comment}\n  {},\n  # last\n]", entries.join(", # e\n  ")),
            Self::LinesWithoutLastComma => format!("[\n\t{} {comment}\n]", entries.join(",\n\n\t")),
            Self::CommasFirst => format!("[\n  {}\n]", entries.join("# e\n  , ")),
        }
    }
}

impl Table {
    /// The keys of the table with their values; limits with dotted keys.
    fn keys(&self) -> Vec<String> {
        let own = |entries: &[&str]| entries.iter().map(|e| (*e).to_owned()).collect::<Vec<_>>();
        let fs = self.fs.iter().map(|path| format!("{{ path = \"{path}\", access = 'read' }}"));
        let lists = [("net", own(&self.net)), ("env", own(&self.env)), ("fs", fs.collect())];
        let lists = lists.iter().map(|(key, list)| format!("{key} = {}", self.list.write(list)));
        let limits = self.limits.iter().map(|limit| format!("limits.{limit}"));
        let capabilities = self.capabilities.iter().map(|line| (*line).to_owned());
        lists.chain(capabilities).chain(limits).collect()
    }
}

impl Style {
    fn write(self, tables: [(&str, &Table); 2]) -> String {
        let dotted = |(name, table): (&str, &Table), front: &str| -> String {
            table.keys().iter().map(|key| format!("{front}{name}.{key} # k\n")).collect()
        };
        let braces =
            |(name, table): (&str, &Table)| format!("{name} = {{ {} }}", table.keys().join(", "));
        let header = |(name, table): (&str, &Table)| {
            format!("# about {name}\n[plugin.{name}] # h\n{}\n\n", table.keys().join(" # k\n"))
        };
        match self {
            Self::Headers => tables.map(header).concat(),
            Self::DottedKeys => tables.map(|table| dotted(table, "plugin.")).concat(),
            Self::SuperTable => {
                format!("[plugin]\n{}", tables.map(|table| dotted(table, "  ")).concat())
            }
            Self::BracesInTable => format!("[plugin]\n{}\n", tables.map(braces).join(" # p\n")),
            Self::Braces => format!("plugin = {{ {} }}\n", tables.map(braces).join(", ")),
        }
    }
}

fn some(words: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::sample::subsequence(words, 0..=words.len())
}

fn table() -> impl Strategy<Value = Table> {
    let lists = (some(&NETS), some(&ENVS), some(&PATHS), some(&LIMITS), some(&CAPABILITIES));
    (lists, select(&LISTS[..])).prop_map(|((net, env, fs, limits, capabilities), list)| Table {
        net,
        env,
        fs,
        limits,
        capabilities,
        list,
    })
}

fn file() -> impl Strategy<Value = String> {
    let ends = select(&["\n", "\n\n", "", "# end", "[[rule]]\ntool = 'w.*'\ndecision = 'ask'"][..]);
    (select(&STYLES[..]), table(), table(), ends, any::<bool>()).prop_map(
        |(style, w, v, end, is_windows)| {
            let text = format!("# top é\n\n{}{end}", style.write([("w", &w), ("v", &v)]));
            if is_windows { text.replace('\n', "\r\n") } else { text }
        },
    )
}

/// Additions, some of which the random files contain already.
fn addition() -> impl Strategy<Value = GrantAddition> {
    prop_oneof![
        select(&["GET https://a.io/**", "GET https://new.io/", "* https://*.c.io/x"][..])
            .prop_map(net),
        select(&["TZ", "NEW", "HOME"][..]).prop_map(env),
        select(&["/a", "/new \"x\"", "~/notes"][..]).prop_map(fs),
        select(&["time", "cpu"][..]).prop_map(|key| limit(key, "1s")),
        select(&[Capability::State, Capability::Notify][..]).prop_map(|of| capability(of, None)),
        Just(capability(Capability::Schedule, Some(("timers", "7")))),
        select(&["https://a.io/**", "https://b.io/x"][..]).prop_map(page),
        select(&["six", "A==1.0", "new"][..]).prop_map(package),
        select(&["s", "new"][..]).prop_map(scratch),
        select(&["stdin", "http://127.0.0.1:8077/a"][..]).prop_map(listen),
    ]
}

/// Additions with every key that an entry can have.
fn full_addition() -> impl Strategy<Value = GrantAddition> {
    let decision = select(&[None, Some(Decision::Allow), Some(Decision::Ask)][..]);
    let reach = select(&[0_usize, 1, 2, 3][..]);
    let net = (decision, reach).prop_map(|(decision, ranges)| {
        let (pattern, reach) = match ranges {
            0 => ("GET https://a.io/**", NetReachText::Public),
            1 => ("* http://localhost:8080/", NetReachText::HostAddresses),
            _ => {
                let some = ["10.0.0.0/8", "fd00::/8"].iter().take(ranges - 1);
                ("GET https://new.io/", NetReachText::Ranges(some.map(|r| (*r).into()).collect()))
            }
        };
        GrantAddition::Net(NetAddition { pattern: pattern.into(), decision, reach })
    });
    let flags = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>(), 0..3_usize);
    let folder = flags.prop_map(|(is_write, is_mounted, has_quota, sensitive, denied)| {
        let access = if is_write { FsAccess::ReadWrite } else { FsAccess::Read };
        GrantAddition::Fs(FsAddition {
            mount: is_mounted.then(|| "/m \"'x".into()),
            deny: ["**/.env", "a\"b"].iter().take(denied).map(|glob| (*glob).into()).collect(),
            quota: (has_quota && is_write).then(|| "10MiB".into()),
            sensitive,
            ..super::folder("~/new é", access)
        })
    });
    let inject = |format: Option<&str>| SecretUseText::Inject {
        to: "https://a.io".into(),
        header: "Authorization".into(),
        format: format.map(str::to_owned),
    };
    let usages = vec![SecretUseText::Reveal, inject(None), inject(Some("Bearer {}"))];
    let secret = select(usages)
        .prop_map(|usage| GrantAddition::Secret(SecretAddition { name: "s".into(), usage }));
    let settings = [
        (Capability::State, "quota", "2MiB"),
        (Capability::Ui, "confirm", "true"),
        (Capability::Process, "network", "true"),
        (Capability::OpenUrl, "decision", "allow"),
    ];
    let setting = select(settings.to_vec())
        .prop_map(|(of, key, value)| GrantAddition::capability_setting(of, key, value));
    let names = select(&["true", "false", "six==1.0"][..]).prop_map(package);
    let public = [("at", "http://0.0.0.0:80"), ("public", "true")];
    let public = GrantAddition::capability_table(Capability::Listen, &public);
    prop_oneof![addition(), net, folder, secret, setting, names, Just(public)]
}

/// Requests all that the random files and additions grant.
fn greedy_manifest() -> Manifest {
    let net = [
        "* https://a.io/**",
        "* https://b.io/**",
        "* https://*.c.io/**",
        "* https://new.io/**",
        "* http://localhost:8080/**",
    ];
    let net = net.map(|pattern| format!("[[request.net]]\nallow = '{pattern}'\nwhy = 'w'\n"));
    let env = ["TZ", "LANG", "HOME", "A_1", "NEW"];
    let env = env.map(|name| format!("[[request.env]]\nname = '{name}'\nwhy = 'w'\n"));
    let others = ["state", "schedule", "notify", "open-url", "packages", "ui", "process"];
    let others = others.map(|word| format!("[[request.{word}]]\nwhy = 'w'\n"));
    let kinds = ["http", "websocket", "stdin"];
    let listen = kinds.map(|kind| format!("[[request.listen]]\nkind = '{kind}'\nwhy = 'w'\n"));
    let scratch =
        ["s", "new"].map(|name| format!("[[request.scratch]]\nname = '{name}'\nwhy = 'w'\n"));
    let head = "name = 'w'\nversion = '1.0.0'\ndescription = 'd'\n\
                [[request.fs]]\naccess = 'read-write'\nwhy = 'w'\n\
                [[request.secrets]]\nname = 's'\nreveal = true\nwhy = 'w'\n";
    let parts = [net.concat(), env.concat(), others.concat(), listen.concat(), scratch.concat()];
    Manifest::parse("plugin.toml", &format!("{head}{}", parts.concat())).unwrap()
}

/// The powers of the plugin `w`, each package by itself.
fn powers(text: &str, manifest: &Manifest) -> BTreeSet<String> {
    let lines = policy(text).effective_grant(manifest, &serde_json::Map::new()).permission_lines();
    let split = |line: String| match line.strip_prefix("fetch the packages ") {
        Some(names) => names.split(", ").map(|name| format!("fetch {name}")).collect(),
        None => vec![line],
    };
    lines.into_iter().flat_map(split).collect()
}

fn policy(text: &str) -> Policy {
    let read = Policy::from_user_file("policy.toml", text, Some(Path::new("/home/me")));
    read.unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The content of a file for each plugin, in one form for all texts with the same meaning.
fn holdings(text: &str) -> BTreeSet<String> {
    let policy = policy(text);
    policy.plugin_tables().flat_map(|tables| plugin_holdings(&tables.user)).collect()
}

fn plugin_holdings(table: &PluginTable) -> Vec<String> {
    let limits = table.limits.to_string();
    let limits = limits.trim_matches(['{', '}', ' ']).split(", ").filter(|limit| !limit.is_empty());
    let allows = table.net.allows.iter().map(ToString::to_string);
    let denies = table.net.denies.iter().map(ToString::to_string);
    let fs = table.fs.iter().map(ToString::to_string);
    let env = table.env.iter().map(|entry| entry.name.clone());
    let capabilities = Capability::ALL.into_iter().flat_map(|of| capability_holdings(table, of));
    let all = allows
        .chain(denies)
        .chain(capabilities)
        .chain(fs)
        .chain(env)
        .chain(limits.map(str::to_owned));
    all.map(|entry| format!("{} {entry}", table.plugin)).collect()
}

/// The content of a capability: each entry of a list, each page, each setting.
fn capability_holdings(table: &PluginTable, of: Capability) -> Vec<String> {
    let entries = table.capabilities.entries_with_text(of).into_iter().map(|(_, text)| text);
    if matches!(of, Capability::Packages | Capability::Scratch | Capability::Listen) {
        return entries.map(|text| format!("{of} {text}")).collect();
    }
    let parts = entries.flat_map(|text| -> Vec<String> {
        text.split([',', '[', ']', '{', '}']).map(|part| part.trim().to_owned()).collect()
    });
    let parts =
        parts.filter(|part| !["", "true", "allow =", "decision = \"allow\""].contains(&&**part));
    let is_itself =
        of != Capability::OpenUrl && !table.capabilities.entries_with_text(of).is_empty();
    let itself = is_itself.then(|| "itself".to_owned());
    parts.chain(itself).map(|part| format!("{of} {part}")).collect()
}

/// Whether a text is another one with insertions, ignoring blanks and line ends.
fn is_within(inner: &str, outer: &str) -> bool {
    let mut outer = outer.chars();
    inner.chars().filter(|c| !c.is_whitespace()).all(|c| outer.any(|other| other == c))
}

fn comments(text: &str) -> usize {
    text.matches('#').count()
}

/// Whether an addition replaces a value, rather than adding an entry.
fn states_a_value(addition: &GrantAddition) -> bool {
    match addition {
        GrantAddition::Limit { .. } => true,
        GrantAddition::Capability(added) => added.item_name().is_none(),
        GrantAddition::Net(_)
        | GrantAddition::Fs(_)
        | GrantAddition::Env(_)
        | GrantAddition::Secret(_) => false,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn an_addition_adds_itself_and_keeps_all_there_is(
        before in file(), additions in vec(addition(), 1..4), name in select(&["w", "v", "new"][..]),
    ) {
        let mut text = before;
        for addition in additions {
            let alone = edit::add_grant("", &plugin(name), &addition).unwrap();
            let after = edit::add_grant(&text, &plugin(name), &addition).unwrap();
            let more: BTreeSet<_> = holdings(&text).union(&holdings(&alone)).cloned().collect();
            prop_assert_eq!(holdings(&after), more, "{}", after);
            prop_assert!(states_a_value(&addition) || is_within(&text, &after), "{}", after);
            prop_assert_eq!(comments(&after), comments(&text));
            prop_assert_eq!(edit::add_grant(&after, &plugin(name), &addition), Ok(after.clone()));
            text = after;
        }
    }

    #[test]
    fn a_removal_removes_what_it_names_and_nothing_else(
        before in file(), addition in addition(), name in select(&["w", "v"][..]),
    ) {
        let target = match &addition {
            GrantAddition::Net(net) => RemovalTarget::Net(net.pattern.clone()),
            GrantAddition::Fs(fs) => RemovalTarget::Fs(fs.path.clone()),
            GrantAddition::Env(env) => RemovalTarget::Env(env.clone()),
            GrantAddition::Limit { key, .. } => RemovalTarget::Limit(key.clone()),
            GrantAddition::Capability(added) => match added.item_name() {
                Some(item) => RemovalTarget::CapabilityItem(added.capability, item),
                None => RemovalTarget::Capability(added.capability),
            },
            GrantAddition::Secret(_) => unreachable!("no secret is added here"),
        };
        let granted = edit::add_grant(&before, &plugin(name), &addition).unwrap();
        let alone = edit::add_grant("", &plugin(name), &addition).unwrap();
        let after = edit::revoke_grant(&granted, &plugin(name), &target).unwrap();
        let less: BTreeSet<_> = holdings(&granted).difference(&holdings(&alone)).cloned().collect();
        prop_assert_eq!(holdings(&after), less, "{}\n{}", granted, after);
        prop_assert!(is_within(&after, &granted), "{}", after);
        prop_assert!(edit::revoke_grant(&after, &plugin(name), &target).is_err());
        prop_assert!(after.contains("# top é"));
    }

    /// What a refusal proposes as text would otherwise be another grant than the one it means.
    #[test]
    fn an_addition_survives_its_text(addition in full_addition()) {
        let fix = addition.to_fix_grant();
        prop_assert_eq!(format!("{}={}", fix.key, fix.entry).parse(), Ok(addition.clone()));
        if let [flag, value] = fix.flags.as_slice() && flag == "--grant" {
            prop_assert_eq!(value.parse(), Ok(addition));
        }
    }

    /// A setting of a switch is an exception, because its default can be higher than it.
    #[test]
    fn a_removal_never_leaves_a_power_that_was_not_there(
        before in file(), addition in full_addition(), is_granted_first in any::<bool>(), removes_list in any::<bool>(),
    ) {
        let before = format!("[secret.s]\nenv = 'S'\n\n{before}");
        let granted = edit::add_grant(&before, &plugin("w"), &addition).unwrap_or_default();
        let is_policy = is_granted_first && !granted.is_empty() && reads(&granted);
        let before = if is_policy { granted } else { before };
        let list = RemovalTarget::CapabilitySetting(Capability::OpenUrl, "allow".into());
        let target = if removes_list { list } else { RemovalTarget::of_addition(&addition) };
        let Ok(after) = edit::revoke_grant(&before, &plugin("w"), &target) else { return Ok(()) };
        let manifest = greedy_manifest();
        let (more, less) = (powers(&before, &manifest), powers(&after, &manifest));
        let is_new = |line: &&String| {
            let unasked = line.strip_suffix(" (asks)").unwrap_or(line);
            !more.contains(*line) && !more.contains(unasked)
        };
        let is_switch_setting = matches!(&target, RemovalTarget::CapabilitySetting(of, _) if *of != Capability::OpenUrl);
        let new: Vec<_> = less.iter().filter(is_new).collect();
        prop_assert!(new.len() <= usize::from(is_switch_setting), "{new:?}\n{before}\n{after}");
        prop_assert!(less.len() <= more.len(), "{}\n{}", before, after);
    }

    #[test]
    fn a_whole_plugin_leaves_the_other_as_it_was(before in file()) {
        if let Ok(after) = edit::revoke_grant(&before, &plugin("w"), &RemovalTarget::Plugin) {
            let less: BTreeSet<_> =
                holdings(&before).into_iter().filter(|held| !held.starts_with("w ")).collect();
            prop_assert_eq!(holdings(&after), less, "{}", after);
            prop_assert!(is_within(&after, &before), "{}", after);
        }
    }

    #[test]
    fn a_rule_joins_any_file(before in file()) {
        let always = rule("w.get", Decision::Allow);
        let after = add_rule(&before, &always).unwrap();
        policy(&after);
        prop_assert!(after.starts_with(before.as_str()));
        prop_assert_eq!(add_rule(&after, &always), Ok(after.clone()));
    }

    #[test]
    fn no_text_makes_an_edit_panic(text in "[\\[\\]{}a-c.\"'= \r\n,#\u{feff}é]{0,60}", end in "\\PC{0,8}") {
        let heads = ["", "[plugin.w]\nopen-url = ", "[plugin.w.open-url]\nallow = ", "[plugin.w]\nstate = ", "plugin.w = ", "[plugin.w]\nenv = ", "[plugin.w.", "[[plugin.w.fs]]\n", "plugin = {w."];
        for head in heads {
            let text = format!("{head}{text}{end}");
            let additions = [
                env("A"), net("GET https://a.io"), fs("/a"), limit("time", "1s"), page("https://a.io"),
                capability(Capability::State, Some(("quota", "1KiB"))), package("six"), listen("stdin"),
            ];
            for addition in additions {
                let _ = grant(&text, &addition);
            }
            let targets = [
                RemovalTarget::Plugin, RemovalTarget::Env(end.clone()), RemovalTarget::Limit("a".into()),
                RemovalTarget::CapabilityItem(Capability::OpenUrl, end.clone()), RemovalTarget::CapabilityItem(Capability::Packages, end.clone()), RemovalTarget::CapabilityItem(Capability::Listen, end.clone()),
                RemovalTarget::Capability(Capability::State),
            ];
            for target in targets {
                let _ = revoke(&text, &target);
            }
            let _ = edit::diff_lines(&text, &end);
        }
    }
}
