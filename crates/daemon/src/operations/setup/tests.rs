use super::addresses::parse_cidr;

#[test]
fn an_address_needs_a_prefix_that_fits_its_family() {
    assert_eq!(parse_cidr("b", "198.18.0.1/24").unwrap(), ("198.18.0.1".parse().unwrap(), 24));
    assert_eq!(parse_cidr("b", "2001:db8::1/128").unwrap().1, 128);
    for bad in ["198.18.0.1", "198.18.0.1/33", "2001:db8::1/129", "x/24", "198.18.0.1/", "198.18.0.1/-1"] {
        let error = parse_cidr("b", bad).unwrap_err();
        assert!(error.cause.contains(bad) && error.hint.is_some(), "{error}");
    }
}
