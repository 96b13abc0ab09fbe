//! Connections: one for each user and plugin, one refresh at a time, no reading across users.

use super::Fixture;
use crate::{ConnectionStatus, NewConnection, SealedTokens};

fn tokens(access: &str, refresh: Option<&str>) -> SealedTokens {
    SealedTokens {
        access_token: access.as_bytes().to_vec(),
        refresh_token: refresh.map(|token| token.as_bytes().to_vec()),
        issued_at_ms: 5,
        expires_at_ms: Some(9),
        scope: "read".to_owned(),
    }
}

fn connection(user: &str, plugin: &str) -> NewConnection {
    NewConnection {
        id: format!("{user}-{plugin}"),
        user_id: user.to_owned(),
        plugin_key: plugin.to_owned(),
        plugin_name: plugin.to_uppercase(),
        tokens: tokens("a1", Some("r1")),
        profile_data: "{}".to_owned(),
        created_at_ms: 3,
    }
}

#[tokio::test]
async fn no_user_reads_the_connections_of_another() {
    let fixture = Fixture::new();
    let store = &fixture.store.connections;
    for (user, plugin) in [("ann", "mail"), ("bob", "mail"), ("ann", "calendar")] {
        store.save_connection(connection(user, plugin)).await.unwrap();
    }
    let keys = async |user: &str| {
        let all = store.list_connections(user).await.unwrap();
        all.into_iter().map(|one| one.connection.plugin_key).collect::<Vec<_>>()
    };
    assert_eq!(keys("ann").await, ["calendar", "mail"]);
    assert_eq!((keys("bob").await, keys("").await), (vec!["mail".to_owned()], Vec::new()));
    for user in ["", "an", "ANN", "%", "ann' OR '1'='1"] {
        assert_eq!(store.find_connection(user, "mail").await.unwrap(), None, "{user}");
        assert!(!store.remove_connection(user, "mail").await.unwrap(), "{user}");
    }
    assert!(store.remove_connection("ann", "mail").await.unwrap());
    assert_eq!(keys("bob").await, ["mail"]);
}

#[tokio::test]
async fn of_many_who_would_refresh_one_does_and_only_its_tokens_count() {
    let fixture = Fixture::new();
    let first = fixture.store.connections.clone();
    let second = fixture.reopen().connections;
    first.save_connection(connection("ann", "mail")).await.unwrap();
    let of = first.find_connection("ann", "mail").await.unwrap().unwrap();
    assert!(first.claim_refresh(&of, 100, 200).await.unwrap());
    assert!(!second.claim_refresh(&of, 150, 250).await.unwrap());
    assert!(second.claim_refresh(&of, 200, 300).await.unwrap(), "a claim ends with its time");
    assert!(second.replace_tokens(&of, tokens("a2", Some("r2"))).await.unwrap());
    assert!(!first.replace_tokens(&of, tokens("a3", None)).await.unwrap(), "it was too late");
    assert!(!first.claim_refresh(&of, 900, 999).await.unwrap(), "its version is old");
    let now = first.find_connection("ann", "mail").await.unwrap().unwrap();
    assert_eq!(now.connection.tokens, tokens("a2", Some("r2")));
    assert_eq!((now.version, now.status), (2, ConnectionStatus::Active));
    assert!(!first.end_connection(&of, ConnectionStatus::Expired).await.unwrap());
    assert!(first.end_connection(&now, ConnectionStatus::Expired).await.unwrap());
    let ended = first.find_connection("ann", "mail").await.unwrap().unwrap();
    assert_eq!(
        (ended.status, ended.connection.tokens.access_token.len()),
        (ConnectionStatus::Expired, 0)
    );
    // Connecting again makes it active, and ends every claim.
    first.save_connection(connection("ann", "mail")).await.unwrap();
    let again = second.find_connection("ann", "mail").await.unwrap().unwrap();
    assert_eq!(again.status, ConnectionStatus::Active);
    assert!(second.claim_refresh(&again, 0, 1).await.unwrap());
    second.release_refresh(&again).await.unwrap();
    assert!(first.claim_refresh(&again, 0, 1).await.unwrap());
}

#[tokio::test]
async fn what_is_too_long_is_not_stored() {
    let fixture = Fixture::new();
    let store = &fixture.store.connections;
    let long = NewConnection { profile_data: "x".repeat(1 << 20), ..connection("ann", "mail") };
    assert!(store.save_connection(long).await.is_err());
    assert_eq!(store.find_connection("ann", "mail").await.unwrap(), None);
}
