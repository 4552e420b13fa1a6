use super::{Effect as E, Signal as I, State, step};
use State::{S0, S1, S2, S3};
use linkbraid_wire::Kind::{Broadcast, Change, Clear, Reply};

//= docs/arp-plus.md#4.1 type=test
#[test]
fn every_state_and_signal_has_its_row() {
    assert_eq!(State::ALL.map(|state| state.to_string()), ["S0", "S1", "S2", "S3"]);
    let rows = [
        (S0, I::Start, S1, E::Join),
        (S0, I::Stop, S0, E::Nothing),
        (S0, I::OwnChange, S0, E::Nothing),
        (S0, I::Timeout, S0, E::Nothing),
        (S0, I::Received(Broadcast), S0, E::Ignore),
        (S0, I::Received(Reply), S0, E::Ignore),
        (S0, I::Received(Change), S0, E::Ignore),
        (S0, I::Received(Clear), S0, E::Ignore),
        (S0, I::Done, S0, E::Nothing),
        (S0, I::Refused, S0, E::Nothing),
        (S1, I::Start, S1, E::Nothing),
        (S1, I::Stop, S0, E::Leave),
        (S1, I::OwnChange, S1, E::Announce),
        (S1, I::Timeout, S1, E::RunTimers),
        (S1, I::Received(Broadcast), S2, E::MakeEntry),
        (S1, I::Received(Reply), S3, E::UpdateTable),
        (S1, I::Received(Change), S3, E::UpdateTable),
        (S1, I::Received(Clear), S3, E::UpdateTable),
        (S1, I::Done, S1, E::Nothing),
        (S1, I::Refused, S1, E::Nothing),
        (S2, I::Start, S2, E::Nothing),
        (S2, I::Stop, S2, E::Nothing),
        (S2, I::OwnChange, S2, E::Nothing),
        (S2, I::Timeout, S2, E::Nothing),
        (S2, I::Received(Broadcast), S2, E::Ignore),
        (S2, I::Received(Reply), S2, E::Ignore),
        (S2, I::Received(Change), S2, E::Ignore),
        (S2, I::Received(Clear), S2, E::Ignore),
        (S2, I::Done, S1, E::Reply),
        (S2, I::Refused, S1, E::Nothing),
        (S3, I::Start, S3, E::Nothing),
        (S3, I::Stop, S3, E::Nothing),
        (S3, I::OwnChange, S3, E::Nothing),
        (S3, I::Timeout, S3, E::Nothing),
        (S3, I::Received(Broadcast), S3, E::Ignore),
        (S3, I::Received(Reply), S3, E::Ignore),
        (S3, I::Received(Change), S3, E::Ignore),
        (S3, I::Received(Clear), S3, E::Ignore),
        (S3, I::Done, S1, E::Nothing),
        (S3, I::Refused, S1, E::Nothing),
    ];
    let pairs = State::ALL.iter().flat_map(|state| I::ALL.iter().map(move |signal| (*state, *signal)));
    assert!(pairs.eq(rows.iter().map(|(state, signal, ..)| (*state, *signal))), "each pair once, in order");
    for (state, signal, next, effect) in rows {
        assert_eq!(step(state, signal), (next, effect), "{state} {signal:?}");
    }
}

/// The published claim: while the driver is loaded, every action leads back to S1.
#[test]
fn every_message_leads_back_to_s1() {
    for kind in linkbraid_wire::Kind::ALL {
        for end in [I::Done, I::Refused] {
            let (working, _) = step(S1, I::Received(kind));
            assert_eq!(step(working, end).0, S1, "{kind:?} {end:?}");
        }
    }
}
