//! The requests of a plugin, one line each, for display and for the lock.

use sallyport_policy::Manifest;

/// Everything that a manifest requests, each with the author's reason.
pub fn manifest_requests(manifest: &Manifest) -> Vec<(String, &str)> {
    let request = &manifest.request;
    let net = request.net.iter().map(|r| (r.allow.to_string(), r.why.as_str()));
    let fs = request.fs.iter().map(|r| {
        let path = r.path.as_ref().map_or("a folder".into(), |path| path.display().to_string());
        (format!("{} {path}", r.access.as_str()), r.why.as_str())
    });
    let env = request.env.iter().map(|r| (format!("the variable {}", r.name), r.why.as_str()));
    let secrets = request.secrets.iter().map(|r| {
        let way = if r.reveal { "to be handed the secret" } else { "the use of the secret" };
        (format!("{way} {}", r.name), r.why.as_str())
    });
    let capabilities =
        request.capabilities.iter().map(|r| (r.requested.to_string(), r.why.as_str()));
    net.chain(fs).chain(env).chain(secrets).chain(capabilities).collect()
}
