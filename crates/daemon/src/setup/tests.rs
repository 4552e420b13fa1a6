use super::{check_mtu, check_name, parse_cidr};

#[test]
fn an_address_needs_a_prefix_that_fits_its_family() {
    assert_eq!(parse_cidr("b", "198.18.0.1/24").unwrap(), ("198.18.0.1".parse().unwrap(), 24));
    assert_eq!(parse_cidr("b", "2001:db8::1/128").unwrap().1, 128);
    for bad in ["198.18.0.1", "198.18.0.1/33", "2001:db8::1/129", "x/24", "198.18.0.1/", "198.18.0.1/-1"] {
        let error = parse_cidr("b", bad).unwrap_err();
        assert!(error.what.contains(bad) && error.hint.is_some(), "{error}");
    }
}

#[test]
fn names_are_those_the_kernel_takes() {
    for good in ["bond0", "fifteen-letters"] {
        check_name(good, "", "").unwrap();
    }
    for bad in ["", ".", "..", "a/b", "a:b", "a b", "sixteen-letters-", "tab\t"] {
        assert!(check_name(bad, "", "").is_err(), "{bad:?}");
    }
}

#[test]
fn the_mtu_has_two_ends() {
    assert_eq!(check_mtu("b", 1280).unwrap(), 1280);
    assert_eq!(check_mtu("b", 65535).unwrap(), 65535);
    assert!(check_mtu("b", 1279).unwrap_err().cause.contains("1280 to 65535"));
    assert!(check_mtu("b", 65536).is_err());
}
