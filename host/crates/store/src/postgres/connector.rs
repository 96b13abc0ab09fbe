//! How connections to the server are made, with TLS or without.

use std::{net::IpAddr, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, RecyclingMethod};
use futures::future;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_postgres::{
    AsyncMessage, Client, Config, Connection, NoTls,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::database::CONNECT_TIME_MAX;
use crate::address::DatabaseAddress;

/// Longest time without a sign of a server that was sent something.
const SILENCE_MAX: Duration = Duration::from_secs(20);

/// The settings of connections.
#[derive(Clone)]
pub(super) struct Connector {
    config: Config,
    tls: Option<MakeRustlsConnect>,
}

/// What is heard on a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Heard {
    /// The connection listens. What was announced before is lost.
    Begun,
    /// A transaction announced this.
    Word(String),
}

impl Connector {
    /// Reads the address. The message of a failure has no part of it, because it may have a password.
    pub(super) fn new(address: &DatabaseAddress) -> Result<Self, String> {
        let mut config: Config =
            address.secret().expose().parse().map_err(|_| {
                "its address cannot be read; escape signs in the password".to_owned()
            })?;
        let connect_time = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIME_MAX);
        config
            .application_name("sallyport")
            .connect_timeout(connect_time)
            .tcp_user_timeout(SILENCE_MAX)
            .keepalives_idle(SILENCE_MAX / 2)
            .keepalives_interval(SILENCE_MAX / 4)
            .keepalives_retries(2);
        if is_local(&config) || config.get_ssl_mode() == SslMode::Disable {
            return Ok(Self { config, tls: None });
        }
        // Another server that answers without TLS is not believed.
        config.ssl_mode(SslMode::Require);
        let tls = sallyport_http_client::tls_config(true).map_err(|error| error.to_string())?;
        Ok(Self { config, tls: Some(MakeRustlsConnect::new(tls)) })
    }

    /// Makes connections for a pool.
    pub(super) fn manager(&self) -> Manager {
        let recycling = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        match self.tls.clone() {
            Some(tls) => Manager::from_config(self.config.clone(), tls, recycling),
            None => Manager::from_config(self.config.clone(), NoTls, recycling),
        }
    }

    /// Listens on a channel until the connection is lost.
    pub(super) async fn listen(
        &self,
        channel: &str,
        hear: impl Fn(Heard),
    ) -> Result<(), tokio_postgres::Error> {
        match self.tls.clone() {
            Some(tls) => {
                let (client, connection) = self.config.connect(tls).await?;
                listen_on(&client, connection, channel, hear).await
            }
            None => {
                let (client, connection) = self.config.connect(NoTls).await?;
                listen_on(&client, connection, channel, hear).await
            }
        }
    }
}

async fn listen_on<S, T>(
    client: &Client,
    mut connection: Connection<S, T>,
    channel: &str,
    hear: impl Fn(Heard),
) -> Result<(), tokio_postgres::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
    T: AsyncRead + AsyncWrite + Unpin,
{
    let sql = format!("LISTEN {channel}");
    let mut listening = std::pin::pin!(client.batch_execute(&sql));
    let mut has_begun = false;
    loop {
        tokio::select! {
            message = future::poll_fn(|context| connection.poll_message(context)) => match message {
                Some(Ok(AsyncMessage::Notification(said))) => {
                    hear(Heard::Word(said.payload().to_owned()));
                }
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error),
                None => return Ok(()),
            },
            begun = &mut listening, if !has_begun => {
                begun?;
                has_begun = true;
                hear(Heard::Begun);
            }
        }
    }
}

/// Whether all servers are on this machine, and TLS was not asked for.
fn is_local(config: &Config) -> bool {
    let is_loopback = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
        }
    };
    config.get_ssl_mode() != SslMode::Require && config.get_hosts().iter().all(is_loopback)
}
