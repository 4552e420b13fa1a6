//! The AUTH TLV in a whole frame: what it holds, and what its code covers. Nothing here knows a key.

use crate::{
    AUTH_TAG_MAX, FRAME_HEADER_LEN, FRAME_LEN_MIN, MacAddr, Refusal, emit::put, frame, parse, probe, tlv,
};

/// Bytes of the authentication code.
pub const AUTH_CODE_LEN: usize = 16;

/// Bytes that the AUTH TLV adds to a message: type, length, key id, index, counter, code.
pub const AUTH_TLV_LEN: usize = 2 + tlv::AUTH_KEY_LEN + 8 + 8 + AUTH_CODE_LEN;

const _: () = assert!(8 + 8 + AUTH_CODE_LEN == AUTH_TAG_MAX);

/// What an AUTH TLV says of the frame that it is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sealed<'a> {
    /// The destination of the frame.
    pub dst: MacAddr,
    /// The source of the frame.
    pub src: MacAddr,
    /// The id of the key that made the code.
    pub key_id: u32,
    /// What the sender drew at random when it started.
    pub index: u64,
    /// Grows with each frame of the sending member.
    pub counter: u64,
    /// All bytes that the code covers: the frame from its destination to the counter.
    pub covered: &'a [u8],
    /// The authentication code.
    pub code: [u8; AUTH_CODE_LEN],
}

/// Whether a frame is one of ARP+, by its EtherType. It may still be a bad one.
pub fn is_arp_plus(bytes: &[u8]) -> bool {
    bytes.get(FRAME_HEADER_LEN - 2..FRAME_HEADER_LEN) == Some(&crate::ETHERTYPE_ARP_PLUS.to_be_bytes()[..])
}

/// The AUTH TLV of a whole frame; none if it has none.
///
/// # Errors
/// Why the frame was refused: it is no ARP+, a TLV reaches past its end, or AUTH has another length than here.
pub fn sealed(bytes: &[u8]) -> Result<Option<Sealed<'_>>, Refusal> {
    let Some((begin, value)) = walk(bytes)?.auth else { return Ok(None) };
    //= docs/arp-plus.md#15.1
    let value = parse::exact::<{ tlv::AUTH_KEY_LEN + AUTH_TAG_MAX }>(value)?;
    let (dst, src, _) = frame::split_frame(bytes)?;
    let mut value = parse::Bytes(&value);
    let key_id = value.array().map(u32::from_be_bytes);
    let [index, counter] = [value.array(), value.array()].map(|bytes| bytes.map(u64::from_be_bytes));
    let (Some(key_id), Some(index), Some(counter), Some(code)) = (key_id, index, counter, value.array())
    else {
        return Err(Refusal::TlvLength);
    };
    let covered = &bytes[..begin + tlv::AUTH_KEY_LEN + 8 + 8];
    Ok(Some(Sealed { dst, src, key_id, index, counter, covered, code }))
}

/// Adds an AUTH TLV to a whole frame that has none; `code` computes the authentication code over the bytes that it is given.
/// Padding gives way to it: the frame is as long as before where there is enough.
///
/// # Errors
/// Why not: the frame is no ARP+ with TLVs, has an AUTH TLV, or would be too long. It is then as it was.
pub fn seal(
    frame: &mut Vec<u8>,
    (key_id, index, counter): (u32, u64, u64),
    code: impl FnOnce(&[u8]) -> [u8; AUTH_CODE_LEN],
) -> Result<(), Refusal> {
    let Walk { auth, end } = walk(frame)?;
    let end = match (auth, end) {
        (None, Some(end)) => end,
        (Some(_), _) => return Err(Refusal::TlvTwice),
        (None, None) => return Err(Refusal::TlvMissing),
    };
    if end + AUTH_TLV_LEN > FRAME_HEADER_LEN + crate::MESSAGE_LEN_MAX {
        return Err(Refusal::TooLong);
    }
    // Whatever follows is padding.
    let padded = frame.len();
    frame.truncate(end);
    let mut value = [0; tlv::AUTH_KEY_LEN + AUTH_TAG_MAX];
    value[..4].copy_from_slice(&key_id.to_be_bytes());
    value[4..12].copy_from_slice(&index.to_be_bytes());
    value[12..20].copy_from_slice(&counter.to_be_bytes());
    put(frame, tlv::AUTH, &value);
    let covered = frame.len() - AUTH_CODE_LEN;
    let code = code(&frame[..covered]);
    frame[covered..].copy_from_slice(&code);
    debug_assert!(frame.len() >= FRAME_LEN_MIN, "an AUTH TLV and all before it need no padding");
    //= docs/arp-plus.md#10.4
    frame::pad_to(frame, padded);
    Ok(())
}

/// Where the parts of a frame are.
struct Walk<'a> {
    /// Where the value of AUTH begins, and the value.
    auth: Option<(usize, &'a [u8])>,
    /// Where the last TLV ends; none if there is no TLV.
    end: Option<usize>,
}

fn walk(frame: &[u8]) -> Result<Walk<'_>, Refusal> {
    let (_, _, payload) = frame::split_frame(frame)?;
    let payload = probe::readable(payload)?;
    let mut bytes = parse::Bytes(payload);
    parse::published(&mut bytes, Some)?;
    let mut walk = Walk { auth: None, end: None };
    if bytes.0.first() != Some(&tlv::VERSION) {
        return Ok(walk);
    }
    let at = |rest: &[u8]| FRAME_HEADER_LEN + payload.len() - rest.len();
    while let Some((kind, value)) = parse::next_tlv(&mut bytes, walk.auth.is_some())? {
        let end = at(bytes.0);
        walk.end = Some(end);
        if kind == tlv::AUTH {
            walk.auth = Some((end - value.len(), value));
        }
    }
    Ok(walk)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostId, Probe, ProbeKind, emit_probe, parse_probe};

    const INDEX: u64 = 0x0102_0304_0506_0708;

    fn probe() -> Vec<u8> {
        let probe = Probe { kind: ProbeKind::Probe, host: HostId([7; 16]), ..Probe::default() };
        emit_probe(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]), &probe).expect("a probe")
    }

    fn sum(bytes: &[u8]) -> [u8; AUTH_CODE_LEN] {
        [bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)); AUTH_CODE_LEN]
    }

    //= docs/arp-plus.md#15.1 type=test
    #[test]
    fn what_is_sealed_reads_back_and_covers_all_before_the_code() {
        let bare = probe();
        let mut frame = bare.clone();
        seal(&mut frame, (0x0a0b_0c0d, INDEX, 9), sum).expect("fits");
        assert_eq!(frame.len(), bare.len() + AUTH_TLV_LEN);
        assert_eq!(&frame[bare.len()..bare.len() + 2], [7, 36], "type and length");
        let read = sealed(&frame).expect("reads").expect("is sealed");
        assert_eq!((read.key_id, read.index, read.counter), (0x0a0b_0c0d, INDEX, 9));
        assert_eq!((read.dst, read.src), (MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1])));
        assert_eq!(read.covered, &frame[..frame.len() - AUTH_CODE_LEN]);
        assert_eq!(read.code, sum(read.covered));
        assert!(parse_probe(&frame).is_ok(), "who knows no keys reads it as before");
        assert_eq!(seal(&mut frame, (1, 1, 1), sum), Err(Refusal::TlvTwice));
    }

    #[test]
    fn padding_is_not_covered_and_does_not_count() {
        let mut frame = probe();
        frame.extend([0; 9]);
        seal(&mut frame, (1, 2, 3), sum).expect("fits");
        let len = frame.len();
        frame.extend([0; 5]);
        assert_eq!(sealed(&frame).expect("reads").expect("is sealed").covered.len(), len - AUTH_CODE_LEN);
    }

    //= docs/arp-plus.md#10.4 type=test
    #[test]
    fn a_padded_request_is_sealed_at_its_length_and_read_from_its_head() {
        let mut bare = probe();
        seal(&mut bare, (1, 2, 3), sum).expect("fits");
        for bytes in [bare.len(), 248, 1514, 1515, 9014, 65_549] {
            let mut long = probe();
            frame::pad_to(&mut long, bytes);
            seal(&mut long, (1, 2, 3), sum).expect("fits");
            assert_eq!(long.len(), bytes);
            assert!(long.starts_with(&bare) && long[bare.len()..].iter().all(|byte| *byte == 0));
            assert!(parse_probe(&long).is_ok());
            for seen in [&long[..], &long[..bytes.min(248)]] {
                assert_eq!(sealed(seen), sealed(&bare), "{bytes}");
            }
        }
        let reply = Probe { kind: ProbeKind::Reply, host: HostId([7; 16]), ..Probe::default() };
        let reply = emit_probe(MacAddr([2; 6]), MacAddr([2, 0, 0, 0, 0, 1]), &Probe { echo: 1, ..reply });
        let mut reply = reply.expect("a reply");
        frame::pad_to(&mut reply, 1515);
        assert_eq!(seal(&mut reply, (1, 2, 3), sum), Err(Refusal::TooLong));
    }

    #[test]
    fn frames_without_a_seal_or_with_a_bad_one_are_told_apart() {
        assert_eq!(sealed(&probe()), Ok(None));
        let mut short = probe();
        put(&mut short, tlv::AUTH, &[0; 12]);
        assert_eq!(sealed(&short), Err(Refusal::TlvLength));
        let mut cut = probe();
        seal(&mut cut, (1, 2, 3), sum).expect("fits");
        cut.truncate(cut.len() - 1);
        assert_eq!(sealed(&cut), Err(Refusal::TlvTruncated));
        let mut published = probe()[..24].to_vec();
        assert_eq!(sealed(&published), Ok(None));
        assert_eq!(seal(&mut published, (1, 2, 3), sum), Err(Refusal::TlvMissing));
        for len in 0..short.len() {
            let _ = sealed(&short[..len]);
        }
    }
}
