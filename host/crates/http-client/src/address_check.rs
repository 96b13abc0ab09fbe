//! Judges the addresses that a client may connect to.

use std::{
    error::Error,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

/// A name leads only to addresses that are not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0} is not a public address")]
pub struct AddressRefused(
    /// The name, or the address.
    pub String,
);

/// Judges a name and one of its addresses.
type AddressJudge = dyn Fn(&str, IpAddr) -> bool + Send + Sync;

/// Resolves names, and keeps only the addresses that are allowed. A client does not resolve a host
/// that is an address, so its user checks such a host.
#[derive(Clone)]
pub struct AddressCheck {
    is_allowed: Arc<AddressJudge>,
}

impl AddressCheck {
    /// A check by this judgement about a name and one of its addresses.
    pub fn new(is_allowed: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static) -> Self {
        Self { is_allowed: Arc::new(is_allowed) }
    }
}

impl Resolve for AddressCheck {
    fn resolve(&self, name: Name) -> Resolving {
        let is_allowed = Arc::clone(&self.is_allowed);
        Box::pin(async move {
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let (allowed, refused): (Vec<SocketAddr>, Vec<_>) =
                found.partition(|address| is_allowed(name.as_str(), address.ip()));
            match allowed.is_empty() && !refused.is_empty() {
                true => Err(AddressRefused(name.as_str().to_owned()).into()),
                false => Ok(Box::new(allowed.into_iter()) as Addrs),
            }
        })
    }
}

/// The refusal that made a request fail, if there was one.
pub fn refused_address<'e>(error: &'e (dyn Error + 'static)) -> Option<&'e AddressRefused> {
    crate::error_and_causes(error).find_map(|error| error.downcast_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_refused_address_is_not_dialled_and_is_told() {
        let ask = async |is_allowed: bool, url: &str| {
            let check = AddressCheck::new(move |name, address| {
                assert_eq!(name, "localhost");
                assert!(address.is_loopback());
                is_allowed
            });
            let builder = crate::client_builder(false).unwrap().dns_resolver(Arc::new(check));
            builder.build().unwrap().get(url).send().await.unwrap_err()
        };
        // Nothing listens on port 1.
        let refused = ask(false, "http://localhost:1/").await;
        let want = AddressRefused("localhost".to_owned());
        assert_eq!(refused_address(&refused), Some(&want), "{refused:?}");
        let unanswered = ask(true, "http://localhost:1/").await;
        assert_eq!(refused_address(&unanswered), None, "{unanswered:?}");
    }
}
