//! Downloads by real programs from real servers go on while links fail silently.

use linkbraid_api::{EventKind, EventRecord};
use linkbraid_lab::{Link, LinkSpec, Topology, Way, wait_until};
use linkbraid_netns_tests::server::{Download, Server, Service};
use linkbraid_netns_tests::{Net, SOON};
use std::time::{SystemTime, UNIX_EPOCH};

/// Of each link of a bond, in Mbit/s.
const RATE: u32 = 20;
/// Of the plain host's one link: more than a whole bond, so that both of the server's links have work.
const PLAIN_RATE: u32 = 50;
/// More than twice what arrives until the third link is in use again; seven seconds' worth over two links.
const BYTES: u64 = 32 << 20;
/// What goes over a link before it is pulled and after it was put back, and over the others meanwhile: a quarter of a
/// second's worth.
const PART: u64 = 512 << 10;

/// The server's host, a client's with a bond, a client's without.
const SERVER: &str = "a";
const BONDED: &str = "b";
const PLAIN: &str = "c";

fn topology() -> Topology {
    let link = |rate| LinkSpec::switch(0, Some(rate));
    let bonded = || [link(RATE), link(RATE)];
    Topology::empty("lab", 1).host(bonded()).host(bonded()).plain_host([link(PLAIN_RATE)])
}

/// A host's record of what happened to the lanes through a link, since some time.
fn lane_events(net: &Net, host: &str, nic: &str, new: &str, since_ms: u64) -> Vec<EventRecord> {
    let prefix = format!("{nic} > ");
    let is_it = |event: &EventRecord| {
        event.kind == EventKind::Lane
            && event.time_ms >= since_ms
            && event.object.starts_with(&prefix)
            && event.new.as_deref() == Some(new)
    };
    net.show(host).events.into_iter().filter(is_it).collect()
}

/// Whether any plan of a host sends through a link.
fn in_use(net: &Net, host: &str, nic: &str) -> bool {
    net.lanes(host).iter().any(|lane| lane.member == nic && lane.share_ppm > 0)
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(since.as_millis()).expect("fits for a while")
}

/// Bytes that a link has carried in the direction of the download.
fn carried(link: &Link<'_>, host: &str) -> u64 {
    let count = link.port_count().expect("reads");
    if host == SERVER { count.in_bytes } else { count.out_bytes }
}

/// The download uses a link.
#[track_caller]
fn wait_carries(download: &mut Download<'_>, link: &Link<'_>, host: &str) {
    let before = carried(link, host);
    download.while_it_runs(&format!("{host}'s {} to carry its part", link.nic()), |_| {
        let more = carried(link, host) - before;
        if more >= PART { Ok(()) } else { Err(more) }
    });
}

/// Says how far the download is, for whoever reads why a test failed.
fn note(download: &Download<'_>, what: &str) {
    eprintln!("{:>9} bytes, longest pause {:?}: {what}", download.received(), download.longest_pause());
}

/// Pulls a link silently while it carries the download, and puts it back after the failure was found.
#[track_caller]
fn pull(net: &Net, download: &mut Download<'_>, host: &str, index: usize) {
    let link = net.host(host).link(index).expect("a link");
    let nic = link.nic();
    wait_carries(download, &link, host);
    let (began, lost) = (now_ms(), link.port_count().expect("reads").cut);
    link.cut(Way::Both).expect("pulls");
    note(download, &format!("pulled {host}'s {nic}"));
    let found = download.while_it_runs(&format!("{host} to find that {nic} is dead"), |_| {
        let found = lane_events(net, host, &nic, "down", began);
        if !found.is_empty() && !in_use(net, host, &nic) { Ok(found) } else { Err(found) }
    });
    let took: Vec<String> =
        found.into_iter().map(|e| format!("{} in {:?} us", e.object, e.took_us)).collect();
    note(download, &format!("found: {}", took.join(", ")));
    let received = download.received();
    download.while_it_runs("it to go on over the other link", |download| {
        let more = download.received() - received;
        if more >= PART { Ok(()) } else { Err(more) }
    });
    assert!(link.port_count().expect("reads").cut > lost, "nothing was lost: it was not pulled under load");
    let mended = now_ms();
    link.restore().expect("puts back");
    note(download, "put back");
    download.while_it_runs(&format!("{host} to use {nic} again"), |_| {
        let back = lane_events(net, host, &nic, "up", mended);
        if !back.is_empty() && in_use(net, host, &nic) { Ok(()) } else { Err(back) }
    });
    note(download, "in use again");
    wait_carries(download, &link, host);
}

/// A download of `client` survives that links (of a host, by number) are pulled, one after the other.
#[track_caller]
fn survives(service: Service, client: &str, pulls: [(&str, usize); 3]) {
    let net = Net::bonded(topology());
    let proven =
        || net.lanes(SERVER).iter().filter(|lane| lane.state == "up" && lane.peer_mac.is_some()).count();
    wait_until(SOON, "proven lanes", proven, |count| *count >= 4).unwrap_or_else(|e| panic!("{e}"));
    net.host(client).wait_ping(net.host(SERVER).ipv4(), SOON).expect("reaches");
    let server = Server::start(&net, SERVER, service, BYTES);
    let mut download = server.download(&net, client);
    for (host, index) in pulls {
        pull(&net, &mut download, host, index);
    }
    note(&download, "nothing more is pulled");
    download.finish();
}

#[test]
fn ftp_to_a_plain_host() {
    survives(Service::Ftp, PLAIN, [(SERVER, 1), (SERVER, 0), (SERVER, 1)]);
}

#[test]
fn http_to_a_plain_host() {
    survives(Service::Http, PLAIN, [(SERVER, 0), (SERVER, 1), (SERVER, 0)]);
}

#[test]
fn smb_to_a_plain_host() {
    survives(Service::Smb, PLAIN, [(SERVER, 1), (SERVER, 0), (SERVER, 1)]);
}

#[test]
fn ftp_to_a_bonded_host() {
    survives(Service::Ftp, BONDED, [(SERVER, 1), (SERVER, 0), (SERVER, 1)]);
}

#[test]
fn http_to_a_bonded_host() {
    // At the client's end.
    survives(Service::Http, BONDED, [(BONDED, 1), (BONDED, 0), (BONDED, 1)]);
}

#[test]
fn smb_to_a_bonded_host() {
    // At both ends in turn.
    survives(Service::Smb, BONDED, [(SERVER, 1), (BONDED, 1), (SERVER, 0)]);
}

#[test]
fn nfs_to_a_plain_host() {
    survives(Service::Nfs, PLAIN, [(SERVER, 0), (SERVER, 1), (SERVER, 0)]);
}

#[test]
fn nfs_to_a_bonded_host() {
    survives(Service::Nfs, BONDED, [(BONDED, 1), (SERVER, 0), (BONDED, 0)]);
}
