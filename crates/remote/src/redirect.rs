//! Where a server may send us on to.

use std::net::{IpAddr, ToSocketAddrs};

use url::{Host, Url};

use crate::error::Fault;

/// The address that a server at `from` names with `target`, if it may: over HTTP, not from an
/// encrypted connection to an open one, and not from elsewhere into this machine or the network
/// that it is in, where the server itself could not go.
///
/// Targets are judged by the address that they spell out. A name is not looked up: whose name it is
/// decides where it leads.
pub(crate) fn allowed(from: &Url, target: &str) -> Result<Url, Fault> {
    let target = from.join(target).map_err(|_| Fault::Redirect("to no URL"))?;
    match (from.scheme(), target.scheme()) {
        ("https", "http") => {
            return Err(Fault::Redirect("from https to http, where anybody can read"));
        }
        (_, "http" | "https") => {}
        _ => return Err(Fault::Redirect("to something else than http or https")),
    }
    if is_near(&target) && !is_near(from) && !leads_near(from) {
        return Err(Fault::Redirect("into this machine or its own network"));
    }
    Ok(target)
}

/// True if a URL spells out an address of this machine or of its network.
fn is_near(url: &Url) -> bool {
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

/// True if the name in a URL is that of a machine in the same network: it may send us to another.
fn leads_near(url: &Url) -> bool {
    let Some(Host::Domain(name)) = url.host() else { return false };
    let addresses = (name, url.port_or_known_default().unwrap_or(0)).to_socket_addrs();
    addresses.is_ok_and(|mut all| all.any(|address| is_private(address.ip())))
}

/// True for addresses that mean another machine, or another service, in every network.
fn is_private(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let shared_by_a_provider = a == 100 && (64..128).contains(&b);
            ip.is_loopback()
                || ip.is_private()
                || ip.is_link_local()
                || shared_by_a_provider
                || a == 0
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
    fn servers_elsewhere_do_not_lead_into_this_network() {
        let from = |from: &str, target: &str| allowed(&Url::parse(from).unwrap(), target);
        let (elsewhere, here) = ("https://203.0.113.7/m.gguf", "http://192.168.1.9/m.gguf");
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
            let into = Fault::Redirect("into this machine or its own network");
            assert_eq!(from(elsewhere, target), Err(into), "{target}");
            assert!(from(here, target).is_ok(), "{target}");
        }
        assert!(from(elsewhere, "https://198.51.100.1/x").is_ok());
        assert_eq!(from(elsewhere, "../n").unwrap().as_str(), "https://203.0.113.7/n");
        for target in ["http://198.51.100.1/", "file:///etc/hostname", "data:,x", "//["] {
            assert!(matches!(from(elsewhere, target), Err(Fault::Redirect(_))), "{target}");
        }
    }
}
