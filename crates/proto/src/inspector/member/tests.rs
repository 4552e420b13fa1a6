use super::*;
use MemberSignal::{Found, Lost, Needed, Waited};
use MemberState::{Delayed, Down, Up};
use linkbraid_wire::MacAddr;

//= docs/arp-plus.md#11.1 type=test
#[test]
fn every_state_and_signal_has_its_row() {
    let rows = [
        (Down, Lost, Down),
        (Down, Found, Delayed),
        (Down, Waited, Down),
        (Down, Needed, Down),
        (Delayed, Lost, Down),
        (Delayed, Found, Delayed),
        (Delayed, Waited, Up),
        (Delayed, Needed, Up),
        (Up, Lost, Down),
        (Up, Found, Up),
        (Up, Waited, Up),
        (Up, Needed, Up),
    ];
    assert_eq!(rows.len(), MemberState::ALL.len() * MemberSignal::ALL.len());
    for (at, (state, signal, new)) in rows.into_iter().enumerate() {
        assert_eq!(state, MemberState::ALL[at / 4]);
        assert_eq!(signal, MemberSignal::ALL[at % 4]);
        assert_eq!(step_member(state, signal), new, "{state:?}, {signal:?}");
    }
}

fn report(admin_up: bool, carrier: bool) -> MemberReport {
    let mac = MacAddr([2, 0, 0, 0, 0, 1]);
    MemberReport { slot: 0, mac, admin_up, carrier, speed_mbit: Some(1000), full_duplex: Some(true) }
}

//= docs/arp-plus.md#11.2 type=test
#[test]
fn flapping_waits_longer_each_time_and_setting_down_does_not_count() {
    let timing = Timing::default();
    let mut member = Member::new(Time::ZERO, report(true, true));
    assert_eq!(member.state, Up);
    let mut waits = Vec::new();
    for second in 1..=9 {
        let now = Time::from_millis(second * 1000);
        assert_eq!(member.take(now, report(true, false), &timing), Some(MemberReason::NoCarrier));
        assert_eq!(member.take(now, report(true, true), &timing), Some(MemberReason::CarrierBack));
        waits.push(now.until(member.until.expect("it waits")).as_millis());
        assert_eq!(member.signal(now, Waited, MemberReason::Waited), Some(MemberReason::Waited));
    }
    assert_eq!(waits, [100, 1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);

    let mut member = Member::new(Time::ZERO, report(false, true));
    assert_eq!((member.state, member.reason), (Down, MemberReason::SetDown));
    for second in 1..5 {
        let now = Time::from_millis(second * 1000);
        member.take(now, report(true, true), &timing);
        assert_eq!(member.until, Some(now + timing.up_delay));
        assert_eq!(member.take(now, report(false, true), &timing), Some(MemberReason::SetDown));
        assert_eq!(member.take(now, report(false, true), &timing), None, "told once");
    }
}

//= docs/arp-plus.md#11.13 type=test
#[test]
fn what_fails_within_its_time_after_a_reset_is_excused() {
    let report = MemberReport {
        slot: 0,
        mac: MacAddr::ZERO,
        admin_up: true,
        carrier: true,
        speed_mbit: None,
        full_duplex: None,
    };
    let mut member = Member::new(Time::ZERO, report);
    let end = Time::from_millis(5000);
    member.excused_until = end;
    assert_eq!([end.minus(Duration::from_nanos(1)), end].map(|at| member.is_excused(at)), [true, false]);
}
