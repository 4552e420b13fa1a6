use super::{interfaces, parent, read, touches};
use linkbraid_api::{Request, value::Millis};

#[test]
fn what_sshd_says_is_read() {
    let both = read("198.18.0.9 50022 198.18.0.1 22").unwrap();
    assert_eq!(both, ("198.18.0.9".parse().unwrap(), "198.18.0.1".parse().unwrap()));
    assert_eq!(
        read("fe80::1%eth0 1 fe80::2%eth0 22").unwrap().0,
        "fe80::1".parse::<std::net::IpAddr>().unwrap()
    );
    for bad in ["", "198.18.0.9 1", "x 1 y 2"] {
        assert_eq!(read(bad), None, "{bad}");
    }
}

#[test]
fn the_interface_of_an_address_is_found_and_so_is_the_parent() {
    let here = [127, 0, 0, 1].into();
    assert!(interfaces(here, here).contains("lo"));
    assert_eq!(parent(std::process::id()), Some(std::os::unix::process::parent_id()));
}

#[test]
fn changes_say_which_interfaces_they_touch() {
    let request = |json: &str| serde_json::from_str::<Request>(json).unwrap();
    let add = request(r#"{"method":"BondAdd","parameters":{"name":"bond0","members":["eth0","eth1"]}}"#);
    assert_eq!(touches(&add), (vec!["eth0".to_owned(), "eth1".to_owned()], false));
    let set = request(r#"{"method":"BondSet","parameters":{"name":"bond0","mtu":1400}}"#);
    assert_eq!(touches(&set), (vec!["bond0".to_owned()], false));
    assert_eq!(touches(&set.tentative(Some(Millis(1000)))), (vec!["bond0".to_owned()], true));
    assert_eq!(
        touches(&request(r#"{"method":"BondSet","parameters":{"name":"bond0","policy":"flow"}}"#)).0,
        Vec::<String>::new()
    );
}
