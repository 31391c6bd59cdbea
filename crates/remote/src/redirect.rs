//! Rules for redirects.

use std::net::{IpAddr, ToSocketAddrs};

use url::{Host, Url};

use crate::error::Fault;

/// Resolves the redirect `target` of a response from `from`, if it is allowed: over HTTP, not from
/// an encrypted to an unencrypted connection, and not from a public host to the local machine or
/// network, which that host could not reach itself.
///
/// Only literal addresses are checked. Host names are not resolved: the owner of a name decides
/// where it points.
pub(crate) fn resolve(from: &Url, target: &str) -> Result<Url, Fault> {
    let target = from.join(target).map_err(|_| Fault::Redirect("to an invalid URL"))?;
    match (from.scheme(), target.scheme()) {
        ("https", "http") => {
            return Err(Fault::Redirect("from https to http, which is not encrypted"));
        }
        (_, "http" | "https") => {}
        _ => return Err(Fault::Redirect("to a scheme other than http or https")),
    }
    if is_local(&target) && !is_local(from) && !resolves_locally(from) {
        return Err(Fault::Redirect("to the local machine or network"));
    }
    Ok(target)
}

/// Whether the host of a URL is a literal address of the local machine or network.
fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Ipv4(ip)) => is_private(ip.into()),
        Some(Host::Ipv6(ip)) => is_private(ip.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.');
            name == "localhost" || name.ends_with(".localhost")
        }
        None => false,
    }
}

/// Whether the host name of a URL resolves to the local network: such a host may redirect within
/// it.
fn resolves_locally(url: &Url) -> bool {
    let Some(Host::Domain(name)) = url.host() else { return false };
    let addresses = (name, url.port_or_known_default().unwrap_or(0)).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|address| is_private(address.ip())))
}

/// Whether an address is loopback, private, link-local or otherwise not public.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let is_carrier_nat = a == 100 && (64..128).contains(&b);
            ip.is_loopback() || ip.is_private() || ip.is_link_local() || is_carrier_nat || a == 0
        }
        IpAddr::V6(ip) => match ip.to_ipv4_mapped() {
            Some(ip) => is_private(ip.into()),
            None => {
                ip.is_loopback()
                    || ip.is_unspecified()
                    || ip.is_unique_local()
                    || ip.is_unicast_link_local()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn public_servers_cannot_redirect_to_the_local_network() {
        let from = |from: &str, target: &str| resolve(&Url::parse(from).unwrap(), target);
        let (public, private) = ("https://203.0.113.7/m.gguf", "http://192.168.1.9/m.gguf");
        for target in [
            "https://127.0.0.1/x",
            "https://169.254.169.254/latest",
            "https://10.1.2.3/",
            "https://192.168.1.1/",
            "https://100.64.0.1/",
            "https://0.0.0.0:80/",
            "https://2130706433/",
            "https://localhost:8080/",
            "https://a.localhost./",
            "https://[::1]/",
            "https://[::ffff:127.0.0.1]/",
            "https://[fd00::1]/",
            "https://[fe80::1]/",
        ] {
            let into = Fault::Redirect("to the local machine or network");
            assert_eq!(from(public, target), Err(into), "{target}");
            assert!(from(private, target).is_ok(), "{target}");
        }
        assert!(from(public, "https://198.51.100.1/x").is_ok());
        assert_eq!(from(public, "../n").unwrap().as_str(), "https://203.0.113.7/n");
        for target in ["http://198.51.100.1/", "file:///etc/hostname", "data:,x", "//["] {
            assert!(matches!(from(public, target), Err(Fault::Redirect(_))), "{target}");
        }
    }
}
