//! Whether an interface's `clsact` has filters, whoever put them there (rtnetlink, `RTM_GETTFILTER`).

use nix::{
    errno::Errno,
    libc,
    sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket},
};
use std::os::fd::AsRawFd;

/// Lengths of `struct nlmsghdr` and `struct tcmsg`.
const MESSAGE_HEADER: usize = 16;
const FILTER_HEADER: usize = 20;
/// `TC_H_CLSACT` with `TC_H_MIN_INGRESS` and with `TC_H_MIN_EGRESS` (linux/pkt_sched.h).
const PARENTS: [u32; 2] = [0xffff_fff2, 0xffff_fff3];
/// The kernel fills at most this much at a time (`NLMSG_GOODSIZE` is less).
const ANSWER_MAX: usize = 32 << 10;

/// What one message of an answer means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Said {
    Filter,
    /// There is no more, or nothing, such as no such queueing discipline.
    End,
    Refused(Errno),
    Other,
}

/// Whether there is a filter on either side. An interface without `clsact` has none.
pub(crate) fn any(ifindex: u32) -> Result<bool, Errno> {
    for parent in PARENTS {
        if any_of(ifindex, parent)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn any_of(ifindex: u32, parent: u32) -> Result<bool, Errno> {
    // A socket for each question: what is left of its answer goes with it.
    let netlink =
        socket(AddressFamily::Netlink, SockType::Raw, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkRoute)?;
    send(netlink.as_raw_fd(), &question(ifindex, parent), MsgFlags::empty())?;
    let mut answer = vec![0; ANSWER_MAX];
    loop {
        let len = recv(netlink.as_raw_fd(), &mut answer, MsgFlags::empty())?;
        let mut rest = &answer[..len];
        while !rest.is_empty() {
            let (said, after) = next(rest).ok_or(Errno::EBADMSG)?;
            match said {
                Said::Filter => return Ok(true),
                Said::End => return Ok(false),
                Said::Refused(errno) => return Err(errno),
                Said::Other => rest = after,
            }
        }
    }
}

/// The request for all filters below `parent`.
fn question(ifindex: u32, parent: u32) -> [u8; MESSAGE_HEADER + FILTER_HEADER] {
    let mut bytes = [0; MESSAGE_HEADER + FILTER_HEADER];
    bytes[0..4].copy_from_slice(&((MESSAGE_HEADER + FILTER_HEADER) as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&libc::RTM_GETTFILTER.to_ne_bytes());
    bytes[6..8].copy_from_slice(&((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    let filter = &mut bytes[MESSAGE_HEADER..];
    filter[4..8].copy_from_slice(&ifindex.to_ne_bytes());
    filter[12..16].copy_from_slice(&parent.to_ne_bytes());
    bytes
}

/// The first message, and what follows it.
fn next(bytes: &[u8]) -> Option<(Said, &[u8])> {
    let (header, _) = bytes.split_first_chunk::<MESSAGE_HEADER>()?;
    let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
    let body = bytes.get(MESSAGE_HEADER..len)?;
    let said = match i32::from(u16::from_ne_bytes([header[4], header[5]])) {
        // A dump that fails halfway says so here; one that does not may end without a number.
        libc::NLMSG_DONE if body.len() < 4 => Said::End,
        libc::NLMSG_DONE | libc::NLMSG_ERROR => {
            match body.first_chunk::<4>().map(|errno| -i32::from_ne_bytes(*errno)) {
                // No such queueing discipline: nothing can hang there.
                Some(0 | libc::EINVAL | libc::ENOENT | libc::ENODEV) => Said::End,
                Some(errno) => Said::Refused(Errno::from_raw(errno)),
                None => Said::Refused(Errno::EBADMSG),
            }
        }
        kind if kind == i32::from(libc::RTM_NEWTFILTER) => Said::Filter,
        _ => Said::Other,
    };
    Some((said, bytes.get(len.next_multiple_of(4)..).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u16, body: &[u8]) -> Vec<u8> {
        let len = (MESSAGE_HEADER + body.len()) as u32;
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.resize(MESSAGE_HEADER, 0);
        bytes.extend(body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn answers_are_read_message_by_message() {
        let refusal = |errno: i32| message(libc::NLMSG_ERROR as u16, &(-errno).to_ne_bytes());
        let said = |bytes: &[u8]| next(bytes).map(|(said, _)| said);
        assert_eq!(said(&message(libc::RTM_NEWTFILTER, &[0; 21])), Some(Said::Filter));
        assert_eq!(said(&message(libc::NLMSG_DONE as u16, &[0; 4])), Some(Said::End));
        let failed = message(libc::NLMSG_DONE as u16, &(-libc::EMSGSIZE).to_ne_bytes());
        assert_eq!(said(&failed), Some(Said::Refused(Errno::EMSGSIZE)));
        assert_eq!(said(&refusal(libc::EINVAL)), Some(Said::End));
        assert_eq!(said(&refusal(libc::EPERM)), Some(Said::Refused(Errno::EPERM)));
        let two = [message(libc::NLMSG_NOOP as u16, &[1]), message(libc::NLMSG_DONE as u16, &[])].concat();
        let (first, rest) = next(&two).expect("a message");
        assert_eq!((first, said(rest)), (Said::Other, Some(Said::End)));
    }

    #[test]
    fn broken_answers_end_the_reading() {
        let whole = message(libc::RTM_NEWTFILTER, &[0; 20]);
        for cut in 0..whole.len() {
            assert_eq!(next(&whole[..cut]), None, "of {cut} bytes");
        }
        let mut shorter = whole.clone();
        shorter[0..4].copy_from_slice(&3u32.to_ne_bytes());
        assert_eq!(next(&shorter), None, "shorter than its own header");
    }
}
