use super::*;

#[test]
fn labels_follow_the_interface() {
    let names = ("eth0", "bond0");
    assert_eq!(relabel("eth0", names), "bond0");
    assert_eq!(relabel("eth0:web", names), "bond0:web");
    assert_eq!(relabel("eth01", names), "eth01");
    assert_eq!(relabel("other", names), "other");
    // 16 bytes do not fit: the label falls back to the interface's own name.
    assert_eq!(relabel("eth0:0123456789", names), "bond0");
}

#[test]
fn lifetimes_shrink_with_time_and_end() {
    let info = |preferred: u32, valid: u32| {
        [preferred, valid, 7, 9].iter().flat_map(|word| word.to_ne_bytes()).collect::<Vec<_>>()
    };
    assert_eq!(remaining(&info(FOREVER, FOREVER), 1 << 40), Some(info(FOREVER, FOREVER)));
    assert_eq!(remaining(&info(100, 200), 60), Some(info(40, 140)));
    // Deprecated, still valid; then neither.
    assert_eq!(remaining(&info(100, 200), 150), Some(info(0, 50)));
    assert_eq!(remaining(&info(100, 200), 200), None);
    // A short structure is passed on as it is.
    assert_eq!(remaining(&[1, 2], 5), Some(vec![1, 2]));
}
