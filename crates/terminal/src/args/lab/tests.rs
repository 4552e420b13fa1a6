use super::*;

#[test]
fn rates_carry_a_unit() {
    assert_eq!(rate("none"), Ok(Rate(None)));
    assert_eq!(rate("1mbit"), Ok(Rate(Some(1))));
    assert_eq!(rate("2gbit"), Ok(Rate(Some(2000))));
    assert_eq!(rate("100gbit"), Ok(Rate(Some(100_000))));
    let range = "allowed are none and 1mbit to 100gbit";
    for (text, cause) in [
        ("100", "has no unit"),
        ("0mbit", "is outside the allowed range"),
        ("101gbit", "is outside the allowed range"),
        ("4294968gbit", "is outside the allowed range"),
        ("100kbit", "has the unknown unit 'kbit'"),
        ("100Mbit", "has the unknown unit 'Mbit'"),
        ("", "is not a rate"),
        ("-1mbit", "is not a rate"),
    ] {
        assert_eq!(rate(text), Err(format!("'{text}' {cause}; {range}")));
    }
}

#[test]
fn labs_have_limits() {
    assert_eq!((lab_hosts("1"), lab_hosts("200")), (Ok(1), Ok(200)));
    assert_eq!(lab_hosts("0"), Err("'0' is outside the allowed range 1 to 200 hosts".to_owned()));
    assert_eq!(lab_hosts("201"), Err("'201' is outside the allowed range 1 to 200 hosts".to_owned()));
    assert_eq!((lab_links("1"), lab_links("64")), (Ok(1), Ok(64)));
    assert_eq!(lab_links("65"), Err("'65' is outside the allowed range 1 to 64 links".to_owned()));
    assert_eq!(lab_plain("0"), Ok(0));
    assert_eq!((demo_links("1"), demo_links("16")), (Ok(1), Ok(16)));
    assert!(demo_links("17").is_err() && demo_links("0").is_err());
    assert_eq!((demo_rate("20mbit"), demo_rate("10gbit")), (Ok(20), Ok(10_000)));
    assert_eq!(demo_rate("none"), Err("'none' is not a rate; allowed are 1mbit to 10gbit".to_owned()));
    assert_eq!((demo_seconds("1"), demo_seconds("3600")), (Ok(1), Ok(3600)));
    assert!(demo_seconds("0").is_err() && demo_seconds("8s").is_err());
}
