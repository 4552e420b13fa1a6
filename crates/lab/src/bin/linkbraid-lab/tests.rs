use super::{Cli, LabUpArgs, LabVerb, Word, summary, topology};
use clap::Parser;

fn args(line: &str) -> LabUpArgs {
    match Cli::try_parse_from(line.split(' ')).unwrap().word {
        Word::Lab(LabVerb::Up(args)) => args,
        Word::Lab(other) => panic!("{other:?}"),
    }
}

#[test]
fn the_default_lab_is_two_hosts_of_four_links() {
    let args = args("linkbraid lab up");
    let lab = topology(&args).unwrap();
    assert_eq!((lab.name.as_str(), lab.hosts.len(), lab.switches.len()), ("lab", 2, 1));
    assert!(lab.hosts.iter().all(|host| host.links.len() == 4 && !host.plain));
    assert!(lab.hosts[0].links.iter().all(|link| link.rate_mbit == Some(100)));
    assert_eq!(
        summary(&args, &lab),
        "lab lab: 2 hosts on one switch, each link 100 Mbit/s\n  \
         a  4 links, 198.18.0.1/24, 2001:db8::1/64\n  \
         b  4 links, 198.18.0.2/24, 2001:db8::2/64\n\
         next:\n  \
         linkbraid lab exec a -- linkbraid daemon &\n  \
         linkbraid lab exec a -- linkbraid bond add bond0 --member eth0,eth1,eth2,eth3\n"
    );
}

#[test]
fn a_demo_of_no_links_is_refused_with_the_range() {
    let refused = Cli::try_parse_from(["linkbraid", "lab", "demo", "--links", "0"]).unwrap_err().to_string();
    assert!(refused.contains("outside the allowed range 1 to 16"), "{refused}");
}

#[test]
fn plain_hosts_come_last_with_one_link() {
    let args = args("linkbraid lab up mine --hosts 3 --links 2 --rate none --plain 1");
    let lab = topology(&args).unwrap();
    assert_eq!(
        lab.hosts.iter().map(|host| (host.links.len(), host.plain)).collect::<Vec<_>>(),
        [(2, false), (2, false), (1, true)]
    );
    assert!(lab.hosts[0].links.iter().all(|link| link.rate_mbit.is_none()));
    let text = summary(&args, &lab);
    assert!(text.starts_with("lab mine: 3 hosts on one switch, each link unlimited\n"), "{text}");
    assert!(text.contains("  c  1 link, plain, 198.18.0.3/24"), "{text}");
    assert!(text.contains("lab exec a --lab mine -- "), "{text}");
}

#[test]
fn more_plain_hosts_than_hosts_is_wrong_usage() {
    let failed = topology(&args("linkbraid lab up --hosts 2 --plain 3")).unwrap_err();
    assert_eq!(failed.error.to_string(), "lab up: option '--plain': '3' is more than the 2 hosts of the lab");
    assert_eq!(failed.code, linkbraid_api::ExitCode::Usage);
}
