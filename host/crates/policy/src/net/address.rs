//! Addresses that are never public.
//!
//! A public name may resolve to any address, so the address that would be dialled is checked too.
//! IPv6 addresses that embed an IPv4 address are judged by the embedded one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use url::{Host, Url};

const fn ipv4_range(a: u8, b: u8, c: u8, d: u8, prefix_bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix_bits)
}

const fn ipv6_range(a: u16, b: u16, c: u16, prefix_bits: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0), prefix_bits)
}

const NEVER_PUBLIC_V4: [Ipv4Net; 16] = [
    ipv4_range(0, 0, 0, 0, 8),        // this host on this network
    ipv4_range(10, 0, 0, 0, 8),       // private
    ipv4_range(100, 64, 0, 0, 10),    // shared by the customers of a carrier
    ipv4_range(127, 0, 0, 0, 8),      // loopback
    ipv4_range(168, 63, 129, 16, 32), // the host of a virtual machine in Azure, which hands out its secrets
    ipv4_range(169, 254, 0, 0, 16),   // link-local, and the metadata services of clouds
    ipv4_range(172, 16, 0, 0, 12),    // private
    ipv4_range(192, 0, 0, 0, 24),     // protocol assignments
    ipv4_range(192, 0, 2, 0, 24),     // documentation
    ipv4_range(192, 88, 99, 0, 24),   // 6to4 relays
    ipv4_range(192, 168, 0, 0, 16),   // private
    ipv4_range(198, 18, 0, 0, 15),    // benchmarks
    ipv4_range(198, 51, 100, 0, 24),  // documentation
    ipv4_range(203, 0, 113, 0, 24),   // documentation
    ipv4_range(224, 0, 0, 0, 4),      // multicast
    ipv4_range(240, 0, 0, 0, 4),      // reserved, and broadcast
];

/// The only block from which public IPv6 addresses are assigned. Everything outside it (loopback,
/// unique local, link-local, site-local, multicast, discard, unassigned space) is not public.
const GLOBAL_UNICAST_V6: Ipv6Net = ipv6_range(0x2000, 0, 0, 3);

/// The blocks inside [`GLOBAL_UNICAST_V6`] that are not public either.
const NEVER_PUBLIC_V6: [Ipv6Net; 3] = [
    ipv6_range(0x2001, 0, 0, 23), // protocol assignments: Teredo tunnels, benchmarks, names of hosts
    ipv6_range(0x2001, 0xdb8, 0, 32), // documentation
    ipv6_range(0x3fff, 0, 0, 20), // documentation
];

/// 6to4: bits 16 to 48 are the IPv4 address of the relay.
const SIX_TO_FOUR: Ipv6Net = ipv6_range(0x2002, 0, 0, 16);

/// NAT64: the last 32 bits are the IPv4 address behind the translator. The block `64:ff9b:1::/48`,
/// for use inside one network, is never public: each network decides where that address goes in it.
const NAT64: Ipv6Net = ipv6_range(0x64, 0xff9b, 0, 96);

/// Returns whether an address belongs to the public internet.
///
/// A network may translate addresses with a NAT64 prefix of its own (RFC 6052). Such an address
/// cannot be recognised, so it is judged by its prefix.
pub fn is_public_address(addr: IpAddr) -> bool {
    match addr {
        IpAddr::V4(addr) => is_public_v4(addr),
        IpAddr::V6(addr) if is_isatap(addr) => false,
        IpAddr::V6(addr) => match embedded_ipv4(addr) {
            Some(embedded) => is_public_v4(embedded),
            None => is_public_v6(addr),
        },
    }
}

/// Whether an address is an ISATAP one, under any prefix: a tunnel to the IPv4 address in its last
/// 32 bits. ISATAP connects the machines of one site, so such an address is never public.
fn is_isatap(addr: Ipv6Addr) -> bool {
    let [_, _, _, _, e, f, _, _] = addr.segments();
    // The two masked bits state whether the IPv4 address is globally unique, and whether it is a
    // group address.
    e & !0x0300 == 0 && f == 0x5efe
}

fn is_public_v4(addr: Ipv4Addr) -> bool {
    !NEVER_PUBLIC_V4.iter().any(|block| block.contains(&addr))
}

fn is_public_v6(addr: Ipv6Addr) -> bool {
    GLOBAL_UNICAST_V6.contains(&addr) && !NEVER_PUBLIC_V6.iter().any(|block| block.contains(&addr))
}

fn embedded_ipv4(addr: Ipv6Addr) -> Option<Ipv4Addr> {
    let [_, b, c, _, _, _, g, h] = addr.segments();
    let join = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    if NAT64.contains(&addr) {
        Some(join(g, h))
    } else if SIX_TO_FOUR.contains(&addr) {
        Some(join(b, c))
    } else {
        addr.to_ipv4_mapped()
    }
}

/// Returns the range that contains one address only.
pub(crate) fn single_address_range(addr: IpAddr) -> IpNet {
    IpNet::from(addr.to_canonical())
}

/// Returns the addresses that the host of a URL determines: the address of a literal, the loopback
/// addresses of `localhost`. Any other name has to be resolved.
pub fn literal_addresses(url: &Url) -> Vec<IpAddr> {
    match url.host() {
        Some(Host::Ipv4(addr)) => vec![addr.into()],
        Some(Host::Ipv6(addr)) => vec![addr.into()],
        Some(Host::Domain("localhost")) => {
            vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]
        }
        Some(Host::Domain(_)) | None => Vec::new(),
    }
}

/// Whether a URL leads to this machine by its host alone: by a loopback address, or as `localhost`.
pub fn is_this_machine(url: &Url) -> bool {
    let own = literal_addresses(url);
    !own.is_empty() && own.iter().all(IpAddr::is_loopback)
}

/// Returns the ranges of the name `localhost`.
pub(crate) fn loopback_ranges() -> Vec<IpNet> {
    vec![IpNet::V4(ipv4_range(127, 0, 0, 0, 8)), IpNet::from(IpAddr::V6(Ipv6Addr::LOCALHOST))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(rows: &str, want: bool) {
        for addr in rows.split_whitespace() {
            assert_eq!(is_public_address(addr.parse().unwrap()), want, "{addr}");
        }
    }

    #[test]
    fn no_address_of_a_private_block_is_public() {
        check(
            "0.0.0.0 0.255.255.255 10.0.0.0 10.255.255.255 100.64.0.0 100.127.255.255 127.0.0.1
             127.255.255.255 169.254.0.0 169.254.169.254 169.254.255.255 172.16.0.0 172.31.255.255
             192.0.0.0 192.0.0.255 192.0.2.0 192.0.2.255 192.88.99.0 192.88.99.255 192.168.0.0
             192.168.255.255 198.18.0.0 198.19.255.255 198.51.100.0 198.51.100.255 203.0.113.0
             203.0.113.255 224.0.0.0 239.255.255.255 240.0.0.0 255.255.255.255",
            false,
        );
        check(
            ":: ::1 ::8.8.8.8 ::ffff:10.0.0.1 ::ffff:127.0.0.1 ::ffff:169.254.169.254
             64:ff9b::10.0.0.1 64:ff9b::127.0.0.1 64:ff9b:1::8.8.8.8 64:ff9b:1:808:8:800::
             100::1 2001::1 2001:0:ffff::1 2001:2::1 2001:10::1 2001:db8::1 2001:db8:ffff::1
             2001:1::1 2001:2:1::1 2001:1ff::1 2002:a00:1::1 2002:7f00:1::1 2002:a9fe:a9fe::1
             3fff::1 4000::1 5f00::1
             fc00::1 fdff::1 fd00:ec2::254 fe80::1 febf::1 fec0::1 feff::1 ff00::1 ff02::1",
            false,
        );
    }

    /// One of these addresses serves a cloud machine's metadata, including its credentials.
    #[test]
    fn the_metadata_service_of_no_cloud_is_public() {
        let v4 = "169.254.169.254 169.254.170.2 169.254.170.23 169.254.42.42 169.254.0.23
                  168.63.129.16 100.100.100.200 192.0.0.192 192.0.0.170";
        check(v4, false);
        check(
            "fd00:ec2::254 fd00:ec2::23 fd20:ce::254 fd00:42::42 fd00:c1::a9fe:a9fe
             fe80::a9fe:a9fe fe80::1234:5678:9abc",
            false,
        );
        // The same addresses, in every IPv6 form that carries them.
        for addr in v4.split_whitespace() {
            let [a, b, c, d] = addr.parse::<Ipv4Addr>().unwrap().octets();
            let hex = format!("{a:02x}{b:02x}:{c:02x}{d:02x}");
            for form in [
                format!("::ffff:{hex}"),
                format!("::{hex}"),
                format!("::ffff:0:{hex}"),
                format!("64:ff9b::{hex}"),
                format!("64:ff9b:1::{hex}"),
                format!("2002:{hex}::1"),
                format!("2001:0:{hex}::1"),
                format!("2606:4700::5efe:{hex}"),
                format!("2606:4700::200:5efe:{hex}"),
                format!("fe80::5efe:{hex}"),
            ] {
                check(&form, false);
            }
        }
    }

    #[test]
    fn a_tunnel_into_a_site_is_not_public_below_any_prefix() {
        check(
            "2606:4700::5efe:10.0.0.1 2606:4700::200:5efe:10.0.0.1 2606:4700::5efe:8.8.8.8
             2002:808:808::5efe:10.0.0.1 2002:808:808::200:5efe:a.b.c.d"
                .replace("a.b.c.d", "127.0.0.1")
                .as_str(),
            false,
        );
        check("2606:4700:0:0:100:5efe:1.1.1.1 2606:4700::300:5efe:1.1.1.1", false);
        check(
            "2606:4700::5eff:1.1.1.1 2606:4700::5efe 2606:4700:5efe::1 2606:4700::400:5efe:1.1.1.1",
            true,
        );
    }

    #[test]
    fn their_public_neighbours_are() {
        check(
            "1.0.0.0 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0
             168.63.129.15 168.63.129.17 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 191.255.255.255 192.0.1.0
             192.0.3.0 192.88.98.255 192.88.100.0 192.167.255.255 192.169.0.0 198.17.255.255
             198.20.0.0 198.51.99.255 198.51.101.0 203.0.112.255 203.0.114.0 223.255.255.255 8.8.8.8",
            true,
        );
        check(
            "2000:: 2001:200::1 2001:db7::1 2001:db9::1 2606:4700::1111 2003::1
             3ffe::1 3fff:1000::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1",
            true,
        );
    }

    #[test]
    fn one_address_makes_a_range_of_one() {
        let rows =
            [("10.1.2.3", "10.1.2.3/32"), ("::1", "::1/128"), ("::ffff:10.1.2.3", "10.1.2.3/32")];
        for (addr, range) in rows {
            assert_eq!(single_address_range(addr.parse().unwrap()).to_string(), range);
        }
    }
}
