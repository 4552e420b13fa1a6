use super::{HALF, MBIT, Said, figure_in};

#[test]
fn lines_of_the_script_are_figures() {
    let said =
        |id: &str, bytes, metric, unit, value| Some(Said { id: id.into(), bytes, metric, unit, value });
    assert_eq!(
        figure_in("  eth0:1500 tipc rtt/2-64 513.2"),
        said("tipc/cable/64", 64, HALF, "us", Some(513.2))
    );
    assert_eq!(
        figure_in("  fab1:65521 tcp mbit-65000 160.0"),
        said("tcp/shm-65521/65000", 65_000, MBIT, "Mbit/s", Some(160.0))
    );
    assert_eq!(
        figure_in("  fab1:1500:busy tipc rtt/2-1 9.5"),
        said("tipc/shm-busy/1", 1, HALF, "us", Some(9.5))
    );
    assert_eq!(figure_in("  fab0:1500 tcp mbit-64 none"), said("tcp/udp/64", 64, MBIT, "Mbit/s", None));
}

#[test]
fn other_lines_are_none() {
    for line in [
        "",
        "round 1 of 3: eth0:1500",
        "  eth1:1500 tcp rtt/2-64 1.0",
        "  eth0:1500:busy tcp rtt/2-64 1.0",
        "  eth0:1500 sctp rtt/2-64 1.0",
        "  eth0:1500 tcp rtt/2-many 1.0",
        "  eth0:1500 tcp rtt/2-64 NaN",
        "  eth0:1500 tcp loss-64 1.0",
        "  kernel          6.1.0-40-amd64",
    ] {
        assert_eq!(figure_in(line), None, "{line}");
    }
}
