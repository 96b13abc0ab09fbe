//! Resolves names to addresses with `/etc/hosts`, then with the name servers of `/etc/resolv.conf`.
//!
//! The name servers are queried asynchronously. The system's own resolver would block one thread
//! per lookup for an unbounded time, and a guest that looks up many names would block many.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr},
    path::Path,
    sync::{Arc, Mutex},
    time::SystemTime,
};

use hickory_resolver::{
    Hosts, TokioResolver,
    config::{NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts},
    net::runtime::TokioRuntimeProvider,
    proto::{
        op::Query,
        rr::{Name, RecordType},
    },
    system_conf::parse_resolv_conf,
};
use sallyport_contract::{BoxFuture, HostNameResolver};

use crate::mutex::lock_mutex;

/// Names that are resolved without a name server.
const HOSTS_PATH: &str = "/etc/hosts";

/// The list of name servers.
const RESOLV_CONF_PATH: &str = "/etc/resolv.conf";

/// The name service that this machine is configured for.
#[derive(Debug, Default)]
pub struct SystemResolver(Mutex<Option<Arc<ResolverSetup>>>);

/// The contents of the two files with their modification times. A machine that moves to another
/// network rewrites them.
#[derive(Debug)]
struct ResolverSetup {
    modification_times: [Option<SystemTime>; 2],
    hosts: Hosts,
    servers: TokioResolver,
}

impl SystemResolver {
    fn current_setup(&self) -> io::Result<Arc<ResolverSetup>> {
        let modification_times = [HOSTS_PATH, RESOLV_CONF_PATH].map(modification_time);
        let mut known = lock_mutex(&self.0);
        if let Some(setup) =
            known.as_ref().filter(|setup| setup.modification_times == modification_times)
        {
            return Ok(Arc::clone(setup));
        }
        let read = |path| fs::read(path).unwrap_or_default();
        let servers =
            parse_resolv_conf(read(RESOLV_CONF_PATH)).unwrap_or_else(|_| local_resolver_config());
        let setup = Arc::new(ResolverSetup::new(modification_times, &read(HOSTS_PATH), servers)?);
        Ok(Arc::clone(known.insert(setup)))
    }
}

fn modification_time(path: &str) -> Option<SystemTime> {
    Path::new(path).metadata().and_then(|info| info.modified()).ok()
}

impl HostNameResolver for SystemResolver {
    fn resolve_host<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move { self.current_setup()?.resolve_host(host).await })
    }
}

impl ResolverSetup {
    fn new(
        modification_times: [Option<SystemTime>; 2],
        hosts: &[u8],
        (config, mut options): (ResolverConfig, ResolverOpts),
    ) -> io::Result<Self> {
        // The hosts file is read here, for both families of addresses at the same time.
        options.use_hosts_file = ResolveHosts::Never;
        let servers = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
            .with_options(options)
            .build()
            .map_err(io::Error::other)?;
        Ok(Self { modification_times, hosts: parse_hosts_file(hosts), servers })
    }

    async fn resolve_host(&self, host: &str) -> io::Result<Vec<IpAddr>> {
        let mut name = Name::from_ascii(host).map_err(io::Error::other)?;
        let known = self.hosts_file_addresses(&name);
        if !known.is_empty() {
            return Ok(known);
        }
        // A name with a dot is absolute. Only a bare name is searched for in the domains of this
        // machine.
        name.set_fqdn(host.contains('.'));
        let found = self.servers.lookup_ip(name).await.map_err(io::Error::other)?;
        Ok(found.iter().collect())
    }

    /// The addresses in `/etc/hosts`. If a name has an address of one family there, the other
    /// family is not looked up.
    fn hosts_file_addresses(&self, name: &Name) -> Vec<IpAddr> {
        let kinds = [RecordType::A, RecordType::AAAA];
        let found = kinds
            .into_iter()
            .filter_map(|kind| self.hosts.lookup_static_host(&Query::query(name.clone(), kind)));
        let records: Vec<_> = found.collect();
        let addresses = records.iter().flat_map(|lookup| lookup.answers());
        addresses.filter_map(|record| record.data.ip_addr()).collect()
    }
}

/// Reads the names of a hosts file. Bytes that are not UTF-8 are replaced, because the other names
/// must still be found. If the file cannot be read at all, only the name servers are queried.
fn parse_hosts_file(bytes: &[u8]) -> Hosts {
    let mut hosts = Hosts::default();
    match hosts.read_hosts_conf(String::from_utf8_lossy(bytes).as_bytes()) {
        Ok(()) => hosts,
        Err(_) => Hosts::default(),
    }
}

/// The default name server is on this machine, as resolv.conf(5) specifies.
fn local_resolver_config() -> (ResolverConfig, ResolverOpts) {
    let server = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
    (ResolverConfig::from_parts(None, Vec::new(), vec![server]), ResolverOpts::default())
}

#[cfg(test)]
mod tests {
    use std::{net::UdpSocket, sync::mpsc, thread};

    use hickory_resolver::{
        config::ConnectionConfig,
        proto::{
            op::{Message, ResponseCode},
            rr::{RData, Record},
        },
    };

    use super::*;

    const HOSTS_FILE: &[u8] =
        b"# comment\n127.0.0.1 localhost\n10.1.1.1 inside.example other\n::2 inside.example\n";

    /// A name server on the loopback that knows `known.example` and `bare.lan.example`, and reports
    /// the queries that it received.
    fn name_server() -> (NameServerConfig, mpsc::Receiver<String>) {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let mut connection = ConnectionConfig::udp();
        connection.port = socket.local_addr().unwrap().port();
        let (asked, heard) = mpsc::channel();
        thread::spawn(move || {
            let mut buffer = [0; 1024];
            while let Ok((bytes, from)) = socket.recv_from(&mut buffer) {
                let reply = reply(&Message::from_vec(&buffer[..bytes]).unwrap(), &asked);
                socket.send_to(&reply.to_vec().unwrap(), from).unwrap();
            }
        });
        let localhost = IpAddr::V4(Ipv4Addr::LOCALHOST);
        (NameServerConfig::new(localhost, true, vec![connection]), heard)
    }

    fn reply(question: &Message, asked: &mpsc::Sender<String>) -> Message {
        let query = question.queries[0].clone();
        let name = query.name().to_ascii().to_ascii_lowercase();
        let _ = asked.send(format!("{} {name}", query.query_type()));
        let mut reply = Message::response(question.metadata.id, question.metadata.op_code);
        reply.add_query(query.clone());
        let is_known = ["known.example.", "bare.lan.example."].contains(&name.as_str());
        match query.query_type() {
            RecordType::A if is_known => {
                let address = RData::from(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)));
                reply.add_answer(Record::from_rdata(query.name().clone(), 60, address));
            }
            _ if is_known => {}
            _ => reply.metadata.response_code = ResponseCode::NXDomain,
        }
        reply
    }

    /// Looks up a name. Returns the result and the queries that the server received.
    async fn look_up(name: &str) -> (Option<Vec<String>>, Vec<String>) {
        look_up_with_hosts(HOSTS_FILE, name).await
    }

    async fn look_up_with_hosts(hosts: &[u8], name: &str) -> (Option<Vec<String>>, Vec<String>) {
        let (server, heard) = name_server();
        let search = vec![Name::from_ascii("lan.example.").unwrap()];
        let config = ResolverConfig::from_parts(None, search, vec![server]);
        let setup =
            ResolverSetup::new([None; 2], hosts, (config, ResolverOpts::default())).unwrap();
        let found = setup.resolve_host(name).await.ok();
        let found = found.map(|all| all.iter().map(ToString::to_string).collect());
        let mut asked: Vec<String> = heard.try_iter().collect();
        asked.sort();
        asked.dedup();
        (found, asked)
    }

    async fn check(name: &str, found: Option<&[&str]>, asked: &[&str]) {
        let (got, heard) = look_up(name).await;
        let found = found.map(|all| all.iter().map(ToString::to_string).collect::<Vec<_>>());
        assert_eq!(got, found, "{name}");
        assert_eq!(heard, asked, "{name}");
    }

    #[tokio::test]
    async fn what_the_hosts_file_knows_nobody_is_asked_for() {
        check("inside.example", Some(&["10.1.1.1", "::2"]), &[]).await;
        check("other", Some(&["10.1.1.1"]), &[]).await;
        check("localhost", Some(&["127.0.0.1"]), &[]).await;
    }

    #[tokio::test]
    async fn a_hosts_file_with_bytes_that_are_not_text_ends_no_lookup() {
        let hosts = b"# M\xfcller\n10.1.1.1 before\n10.1.1.2 m\xfcller after\n10.1.1.3 last\n";
        for (name, want) in [("before", "10.1.1.1"), ("after", "10.1.1.2"), ("last", "10.1.1.3")] {
            let found = look_up_with_hosts(hosts, name).await;
            assert_eq!(found, (Some(vec![want.to_owned()]), Vec::new()), "{name}");
        }
        let (found, asked) = look_up_with_hosts(hosts, "known.example").await;
        assert_eq!(found, Some(vec!["192.0.2.7".to_owned()]));
        assert_eq!(asked.len(), 2);
    }

    #[tokio::test]
    async fn the_servers_are_asked_for_the_rest() {
        let known = ["A known.example.", "AAAA known.example."];
        check("known.example", Some(&["192.0.2.7"]), &known).await;
        let bare = ["A bare.lan.example.", "AAAA bare.lan.example."];
        check("bare", Some(&["192.0.2.7"]), &bare).await;
    }

    /// Otherwise `known.example.lan.example` could answer for a name that a policy grants.
    #[tokio::test]
    async fn a_name_with_a_dot_is_not_looked_for_elsewhere() {
        let unknown = ["A un.known.example.", "AAAA un.known.example."];
        check("un.known.example", None, &unknown).await;
    }

    #[tokio::test]
    async fn what_is_no_name_is_an_error() {
        for name in ["a..b", &"x".repeat(64), &"x.".repeat(200)] {
            assert_eq!(look_up(name).await, (None, Vec::new()), "{name:?}");
        }
    }
}
