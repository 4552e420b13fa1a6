use super::*;

#[test]
fn the_broadcast_address_has_all_host_bits_set() {
    assert_eq!(broadcast_of("198.18.0.1/24"), Some(Ipv4Addr::new(198, 18, 0, 255)));
    assert_eq!(broadcast_of("198.18.3.1/15"), Some(Ipv4Addr::new(198, 19, 255, 255)));
    assert_eq!(broadcast_of("198.18.0.1/32"), Some(Ipv4Addr::new(198, 18, 0, 1)));
    assert_eq!(broadcast_of("2001:db8::1/64"), None);
}
