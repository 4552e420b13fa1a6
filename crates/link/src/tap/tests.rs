use super::*;
use crate::error::Kind;

fn config() -> TapConfig {
    TapConfig {
        name: "fab0".into(),
        queues: 1,
        mac: MacAddr([2, 0, 0, 0, 0, 1]),
        mtu: 1500,
        offloads: TapOffloads::ALL,
        queue_len: TAP_QUEUE_LEN,
    }
}

#[test]
fn what_no_device_can_be_is_refused_before_the_kernel_is_asked() {
    for name in ["", "a-name-too-long0", "a/b", "a b", "fab%d", "a:b", ".", "..", "a\0b"] {
        let refused = check(&TapConfig { name: name.into(), ..config() }).unwrap_err();
        assert_eq!(refused.cause, TapCause::BadName, "{name:?}");
    }
    for mtu in [0, TAP_MTU_MIN - 1, TAP_MTU_MAX + 1, u32::MAX] {
        let refused = check(&TapConfig { mtu, ..config() }).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("fab0: cannot set its MTU to {mtu}: it is outside the allowed range 68 to 65521")
        );
    }
    for queues in [0, TAP_QUEUES_MAX + 1] {
        assert_eq!(check(&TapConfig { queues, ..config() }).unwrap_err().cause, TapCause::BadQueues);
    }
    for mac in [MacAddr::ZERO, MacAddr::BROADCAST, MacAddr([3, 0, 0, 0, 0, 1])] {
        assert_eq!(check(&TapConfig { mac, ..config() }).unwrap_err().cause, TapCause::BadMac);
    }
    assert_eq!(check(&config()), Ok(()));
}

#[test]
fn a_kernel_without_the_driver_is_told_from_a_user_without_the_right() {
    let cause = |errno: Errno| TapCause::of_open(&std::io::Error::from_raw_os_error(errno as i32));
    assert_eq!(cause(Errno::ENOENT), TapCause::NoDriver);
    assert_eq!(cause(Errno::ENODEV), TapCause::NoDriver);
    assert_eq!(cause(Errno::EACCES), TapCause::NotPermitted);
    assert_eq!(cause(Errno::EMFILE), TapCause::Kernel(Kind::Other(Errno::EMFILE)));
    let error = TapError::new("fab0", "cannot create the TAP device", TapCause::NoDriver);
    assert_eq!(error.hint().as_deref(), Some("modprobe tun"));
}

#[test]
fn segmentation_without_checksums_is_not_asked_for() {
    let odd = TapOffloads { checksum: false, tso: true, uso: true };
    assert_eq!(odd.and(TapOffloads::ALL), TapOffloads::NONE);
    let old = TapOffloads { uso: false, ..TapOffloads::ALL };
    assert_eq!(TapOffloads::ALL.and(old), old);
}

#[test]
fn a_kernel_that_knows_less_gets_less() {
    const CSUM_TSO: libc::c_uint =
        libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
    let kernel =
        |known: libc::c_uint| move |bits| if bits & !known == 0 { Ok(()) } else { Err(Errno::EINVAL) };
    let all = best(TapOffloads::ALL, kernel(CSUM_TSO | libc::TUN_F_USO4 | libc::TUN_F_USO6));
    assert_eq!(all, Ok(TapOffloads::ALL));
    let before_6_2 = best(TapOffloads::ALL, kernel(CSUM_TSO));
    assert_eq!(before_6_2, Ok(TapOffloads { uso: false, ..TapOffloads::ALL }));
    assert_eq!(
        best(TapOffloads::ALL, kernel(libc::TUN_F_CSUM)),
        Ok(TapOffloads { checksum: true, ..TapOffloads::NONE })
    );
    assert_eq!(best(TapOffloads::ALL, kernel(0)), Ok(TapOffloads::NONE));
    assert_eq!(best(TapOffloads::ALL, |_| Err(Errno::EBADFD)), Err(Errno::EBADFD));
}

#[test]
fn what_nodes_tell_each_other_comes_back() {
    for bits in 0..8 {
        let offloads = TapOffloads::of_features(bits);
        assert_eq!(TapOffloads::of_features(offloads.features()), offloads);
    }
    assert_eq!(TapOffloads::ALL.features(), 7);
    assert_eq!(TapOffloads::of_features(0xfff8), TapOffloads::NONE);
    assert_eq!(TapOffloads::of_features(6), TapOffloads::NONE, "nothing without checksums");
}
