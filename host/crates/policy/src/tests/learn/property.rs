//! Properties of any proposal: it lifts every refusal that it does not leave open, and permits
//! nothing else.

use percent_encoding::percent_decode_str;
use proptest::{collection::vec, prelude::*, sample::select};

use super::*;
use crate::{
    Grant, NetPattern,
    edit::GrantAddition,
    net::pattern::RequestTarget,
    tests::{grant, send},
};

fn methods() -> impl Strategy<Value = &'static str> {
    select(&["GET", "PUT"][..])
}

fn hosts() -> impl Strategy<Value = &'static str> {
    select(&["https://a.io", "https://b.a.io:8443", "http://localhost"][..])
}

/// Requests from so few words that many are siblings.
fn request() -> impl Strategy<Value = String> {
    let name = select(&["", "a", "b", "c", "ab", "d*", "%61", "x1", "x2", "x3", "x4", "x5"][..]);
    let folder = select(&["", "/a", "/a/b"][..]);
    (methods(), hosts(), folder, name)
        .prop_map(|(method, host, folder, name)| format!("{method} {host}{folder}/{name}"))
}

/// Patterns of manifests and policies that match some of them.
fn pattern() -> impl Strategy<Value = String> {
    let path =
        select(&["/**", "/*", "/a/**", "/a/*", "/a/x*", "/a/b/*", "/ab", "/a/*b", "/a/x1"][..]);
    let hosts = select(&["https://a.io", "https://*.a.io:8443", "http://localhost"][..]);
    let methods = select(&["*", "GET", "GET,PUT"][..]);
    (methods, hosts, path).prop_map(|(method, host, path)| format!("{method} {host}{path}"))
}

fn asking(patterns: &[String]) -> String {
    let entries = patterns.iter().map(|p| format!("[[request.net]]\nallow = '{p}'\nwhy = 'w'\n"));
    entries.collect()
}

fn table(allows: &[String], denies: &[String]) -> String {
    let allows = allows.iter().map(|pattern| format!("'{pattern}'"));
    let denies = denies.iter().map(|pattern| format!("{{ deny = '{pattern}' }}"));
    format!("[plugin.weather]\nnet = [{}]\n", allows.chain(denies).collect::<Vec<_>>().join(", "))
}

/// The method, origin and path of a request as servers read it; the path as folder and name.
fn parts(request: &str) -> (String, String, String) {
    let (method, url) = request.split_once(' ').unwrap();
    let url = Url::parse(url).unwrap();
    let path = percent_decode_str(url.path()).decode_utf8().unwrap().into_owned();
    let (folder, name) = path.rsplit_once('/').unwrap();
    let origin = url.origin().ascii_serialization();
    (format!("{method} {origin}"), folder.to_owned(), name.to_owned())
}

/// Whether a request was needed: itself, or too many of its siblings to list one by one.
fn is_needed(needs: &[String], request: &str) -> bool {
    let (origin, folder, name) = parts(request);
    let family: BTreeSet<_> = needs
        .iter()
        .filter(|need| {
            let (other, others, _) = parts(need);
            (other, others) == (origin.clone(), folder.clone())
        })
        .collect();
    family.len() > 8 || family.iter().any(|need| parts(need).2 == name)
}

fn matches(pattern: &str, request: &str) -> bool {
    let (method, url) = request.split_once(' ').unwrap();
    let url = Url::parse(url).unwrap();
    let pattern: NetPattern = pattern.parse().unwrap();
    RequestTarget::new(method, &url).is_ok_and(|target| pattern.matches(&target))
}

const FOLDERS: [&str; 5] = ["/data", "/data/in", "/data/out", "/data/out/deep", "/etc/x"];

fn access() -> impl Strategy<Value = FsAccess> {
    select(&[Read, ReadWrite][..])
}

fn folders(most: usize) -> impl Strategy<Value = Vec<(&'static str, FsAccess)>> {
    vec((select(&FOLDERS[..]), access()), 0..most)
}

fn sees(grant: &Grant, path: &str, access: FsAccess) -> bool {
    let path = std::path::Path::new(path);
    grant.fs().iter().any(|mount| path.starts_with(&mount.guest) && mount.access >= access)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..Default::default() })]

    #[test]
    fn requests_are_let_through_and_no_others(
        asked in vec(pattern(), 0..4), allows in vec(pattern(), 0..2), denies in vec(pattern(), 0..2),
        needs in vec(request(), 0..40), others in vec(request(), 20),
    ) {
        let (asked_text, before) = (asking(&asked), table(&allows, &denies));
        let nets: Vec<_> = needs.iter().map(|need| net(need)).collect();
        let proposal = propose(&asked_text, &before, &nets);
        let after = proposal.apply_to(&before).unwrap();
        let [old, new] = [&before, &after].map(|text| grant(text, &asked_text));
        for need in &needs {
            let is_open = |open: &String| open.starts_with(&format!("weather may not {need}:"));
            let is_lifted = send(&new, need).is_ok();
            prop_assert!(is_lifted != proposal.unresolved.iter().any(is_open), "{need}\n{after}");
        }
        for other in &others {
            let is_new = send(&new, other).is_ok() && send(&old, other).is_err();
            prop_assert!(!is_new || is_needed(&needs, other), "{other}\n{after}");
        }
        for addition in &proposal.additions {
            let GrantAddition::Net(net) = addition else { continue };
            for other in others.iter().filter(|other| matches(&net.pattern, other)) {
                prop_assert!(asked.iter().any(|asked| matches(asked, other)), "{}", net.pattern);
            }
        }
        let again = propose(&asked_text, &after, &nets);
        prop_assert_eq!((again.additions, again.unresolved), (vec![], proposal.unresolved));
    }

    #[test]
    fn files_are_let_through_and_no_others(
        asked in folders(4), granted in folders(2), needs in folders(5), other in folders(2),
    ) {
        let requests = |(path, access): &(&str, FsAccess)| {
            format!("[[request.fs]]\naccess = '{}'\npath = '{path}'\nwhy = 'w'\n", access.as_str())
        };
        let asked: String = asked.iter().map(requests).collect();
        let entries = granted.iter().map(|(path, access)| {
            format!("{{ path = '{path}', mount = '{path}', access = '{}' }}", access.as_str())
        });
        let before = format!("[plugin.weather]\nfs = [{}]\n", entries.collect::<Vec<_>>().join(", "));
        prop_assume!(crate::tests::parse_policy(&before).is_ok());
        let below = |(folder, access): &(&str, FsAccess)| (format!("{folder}/file"), *access);
        let needs: Vec<_> = needs.iter().map(below).collect();
        let noted: Vec<_> = needs.iter().map(|(file, access)| path(file, *access)).collect();
        let proposal = propose(&asked, &before, &noted);
        let after = proposal.apply_to(&before).unwrap();
        let [old, new] = [&before, &after].map(|text| grant(text, &asked));
        for (file, access) in &needs {
            let verb = if *access == Read { "read" } else { "change" };
            let is_open = |open: &String| open.starts_with(&format!("weather may not {verb} {file}:"));
            prop_assert!(sees(&new, file, *access) || proposal.unresolved.iter().any(is_open), "{file}\n{after}");
        }
        for (file, access) in other.iter().map(below) {
            let is_new = sees(&new, &file, access) && !sees(&old, &file, access);
            let mount = |path: &str| new.fs().iter().position(|mount| std::path::Path::new(path).starts_with(&mount.guest));
            let asks = |need: &(String, FsAccess)| mount(&need.0) == mount(&file) && need.1 >= access;
            prop_assert!(!is_new || needs.iter().any(asks), "{file}\n{after}");
        }
    }
}
