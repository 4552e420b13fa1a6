mod refusals;

use super::{Cli, HookArg, Word};
use clap::{CommandFactory, Parser};
use linkbraid_api::{
    Auth, BondAdd, BondClass, BondDel, BondOptions, BondSet, Borrow, ClassAdd, ClassDel, ClassOptions,
    ClassSet, Fallback, InspectorOptions, KeySource, MemberAdd, MemberDel, MemberOptions, MemberSet, Policy,
    Precedence, Request, Stripe, Tentative, Weight,
    value::{Millis, Number},
    varlink::Method,
};
use linkbraid_terminal::args::lab::{CcArg, LabVerb};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// A command line, whose words may be in single quotes.
fn parse(line: &str) -> Cli {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(i, part)| match i % 2 {
        0 => part.split_whitespace().collect(),
        _ => vec![part],
    });
    Cli::try_parse_from(std::iter::once("linkbraid").chain(words))
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn request(line: &str) -> Request {
    match parse(line).word {
        Word::Bond(verb) => verb.into(),
        Word::Member(verb) => verb.into(),
        Word::Class(verb) => verb.into(),
        Word::Fabric(verb) => verb.into(),
        Word::Confirm(confirm) => Request::Confirm(confirm),
        other => panic!("{line} asks the daemon for nothing: {other:?}"),
    }
}

fn refused(line: &str) -> bool {
    let words = std::iter::once("linkbraid").chain(line.split(' ').filter(|word| !word.is_empty()));
    Cli::try_parse_from(words).is_err()
}

fn name<T: FromStr<Err = String>>(text: &str) -> T {
    text.parse().unwrap()
}

#[test]
fn definitions_are_sound() {
    Cli::command().debug_assert();
}

#[test]
fn bond_add_defaults() {
    // What a request leaves out is tested where requests are.
    let least: BondAdd = serde_json::from_str(r#"{"name":"bond0","members":["eth1"]}"#).unwrap();
    assert_eq!(request("bond add bond0 --member eth1"), Request::BondAdd(least));
}

#[test]
fn bond_add_takes_every_option() {
    let line = "bond add bond0 --member eth1,eth2 --member eth3 --address 198.18.0.1/24 --address 2001:db8::1/64 \
                --policy active-backup --mtu 9000 --stripe 4400B --damping off --latency on --published-only on \
                --key /etc/linkbraid/bond0.key --auth require --move-address \
                --probes off --probe-interval 1s --probe-multiplier 2 --up-delay 0ms --hold-max 0s \
                --class urgent=eth2,eth3";
    let expected = BondAdd {
        name: name("bond0"),
        members: vec![name("eth1"), name("eth2"), name("eth3")],
        addresses: vec!["198.18.0.1/24".into(), "2001:db8::1/64".into()],
        options: BondOptions {
            policy: Some(Policy::ActiveBackup),
            mtu: Some(Number(9000)),
            stripe: Some(Stripe::Bytes(4400)),
            damping: Some(false),
            latency: Some(true),
            published_only: Some(true),
            key: Some(KeySource::File("/etc/linkbraid/bond0.key".into())),
            auth: Some(Auth::Require),
            inspector: InspectorOptions {
                probes: Some(false),
                probe_interval: Some(Millis(1000)),
                probe_multiplier: Some(Number(2)),
                up_delay: Some(Millis(0)),
                hold_max: Some(Millis(0)),
            },
        },
        move_address: true,
        classes: vec![BondClass { name: name("urgent"), members: vec![name("eth2"), name("eth3")] }],
    };
    assert_eq!(request(line), Request::BondAdd(expected));
}

#[test]
fn options_may_stand_before_the_name() {
    let expected = request("bond add bond0 --member eth1,eth2");
    assert_eq!(request("bond add --member eth1,eth2 bond0"), expected);
    assert_eq!(request("bond add --member=eth1,eth2 bond0"), expected);
}

#[test]
fn bond_set_sends_only_what_is_given() {
    let set = |line: &str| request(&format!("bond set bond0 {line}"));
    let none = BondOptions::default();
    let probing = |inspector| BondOptions { inspector, ..none.clone() };
    let nothing = InspectorOptions::default();
    for (line, options) in [
        ("--policy flow", BondOptions { policy: Some(Policy::Flow), ..none.clone() }),
        ("--mtu 1500", BondOptions { mtu: Some(Number(1500)), ..none.clone() }),
        ("--stripe 200us", BondOptions { stripe: Some(Stripe::Us(200)), ..none.clone() }),
        ("--damping off", BondOptions { damping: Some(false), ..none.clone() }),
        ("--latency on", BondOptions { latency: Some(true), ..none.clone() }),
        (
            "--damping on --mtu 9000",
            BondOptions { damping: Some(true), mtu: Some(Number(9000)), ..none.clone() },
        ),
        ("--probes on", probing(InspectorOptions { probes: Some(true), ..nothing })),
        ("--probe-interval 20ms", probing(InspectorOptions { probe_interval: Some(Millis(20)), ..nothing })),
        (
            "--probe-multiplier 50",
            probing(InspectorOptions { probe_multiplier: Some(Number(50)), ..nothing }),
        ),
        ("--hold-max 1500ms", probing(InspectorOptions { hold_max: Some(Millis(1500)), ..nothing })),
        ("--up-delay 2s", probing(InspectorOptions { up_delay: Some(Millis(2000)), ..nothing })),
    ] {
        let expected = BondSet { name: name("bond0"), options, addresses: None };
        assert_eq!(set(line), Request::BondSet(expected), "{line}");
    }
    for (line, addresses) in
        [("--address 198.18.0.1/24", vec!["198.18.0.1/24".to_owned()]), ("--no-addresses", vec![])]
    {
        let expected = BondSet { name: name("bond0"), options: none.clone(), addresses: Some(addresses) };
        assert_eq!(set(line), Request::BondSet(expected), "{line}");
    }
    assert!(refused("bond set bond0"), "a set that changes nothing is a mistake");
}

#[test]
fn bond_del() {
    assert_eq!(request("bond del bond0"), Request::BondDel(BondDel { name: name("bond0") }));
    assert!(refused("bond del"));
    assert!(refused("bond del bond0 bond1"));
}

#[test]
fn members() {
    let add = MemberAdd {
        bond: name("bond0"),
        interface: name("eth3"),
        options: MemberOptions::default(),
        move_address: false,
        force: false,
        class: None,
    };
    let weight = |weight| MemberOptions { weight: Some(weight), weight_fixed: None };
    assert_eq!(
        request("member add bond0 eth3 --class voice"),
        Request::MemberAdd(MemberAdd { class: Some(name("voice")), ..add.clone() })
    );
    assert_eq!(request("member add bond0 eth3"), Request::MemberAdd(add.clone()));
    assert_eq!(
        request("member add bond0 eth3 --weight 100 --move-address --force"),
        Request::MemberAdd(MemberAdd {
            options: weight(Weight::Mbit(100)),
            move_address: true,
            force: true,
            ..add
        })
    );
    for (text, asked) in [("auto", Weight::Auto), ("100", Weight::Mbit(100))] {
        assert_eq!(
            request(&format!("member set bond0 eth3 --weight {text}")),
            Request::MemberSet(MemberSet {
                bond: name("bond0"),
                interface: name("eth3"),
                options: weight(asked)
            })
        );
    }
    assert!(refused("member set bond0 eth3"));
    for (option, force) in [("", false), (" --force", true)] {
        assert_eq!(
            request(&format!("member del bond0 eth3{option}")),
            Request::MemberDel(MemberDel { bond: name("bond0"), interface: name("eth3"), force })
        );
    }
}

#[test]
fn class_add() {
    let blank = ClassAdd {
        bond: name("bond0"),
        name: name("voice"),
        members: vec![],
        rules: vec!["dscp=ef".parse().unwrap()],
        options: ClassOptions::default(),
    };
    assert_eq!(request("class add bond0 voice --match dscp=46"), Request::ClassAdd(blank.clone()));
    assert_eq!(
        request(
            "class add bond0 voice --member eth3,eth4 --member eth5 --match dscp=ef \
             --match udp-port=5004,host=198.18.0.7 --policy mirror --fallback block --borrow idle --precedence on"
        ),
        Request::ClassAdd(ClassAdd {
            members: vec![name("eth3"), name("eth4"), name("eth5")],
            rules: vec!["dscp=ef".parse().unwrap(), "udp-port=5004,host=198.18.0.7".parse().unwrap()],
            options: ClassOptions {
                policy: Some(Policy::Mirror),
                fallback: Some(Fallback::Block),
                borrow: Some(Borrow::Idle),
                precedence: Some(Precedence::On),
            },
            ..blank
        })
    );
    for line in [
        "class add bond0 voice",
        "class add bond0 --match dscp=ef",
        "class add bond0 rest --match dscp=ef",
        "class add bond0 Voice --match dscp=ef",
        "class add bond0 voice --match dscp=ef tcp-port=22",
        "class add bond0 voice --match dscp=ef --fallback drop",
        "class add bond0 voice --match dscp=ef --borrow always",
        "bond set bond0 --policy mirror",
        "bond add bond0 --member a,b,c --class x=b --class y=c",
    ] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn class_set_sends_only_what_is_given() {
    let set = |line: &str| request(&format!("class set bond0 voice {line}"));
    let none = ClassOptions::default();
    let options =
        |options| ClassSet { options, bond: name("bond0"), name: name("voice"), members: None, rules: None };
    let blank = options(none);
    for (line, expected) in [
        ("--member eth3,eth4", ClassSet { members: Some(vec![name("eth3"), name("eth4")]), ..blank.clone() }),
        ("--no-members", ClassSet { members: Some(vec![]), ..blank.clone() }),
        (
            "--match priority=6",
            ClassSet { rules: Some(vec!["priority=6".parse().unwrap()]), ..blank.clone() },
        ),
        ("--policy mirror", options(ClassOptions { policy: Some(Policy::Mirror), ..none })),
        ("--fallback share", options(ClassOptions { fallback: Some(Fallback::Share), ..none })),
        ("--borrow idle", options(ClassOptions { borrow: Some(Borrow::Idle), ..none })),
    ] {
        assert_eq!(set(line), Request::ClassSet(expected), "{line}");
    }
    assert!(refused("class set bond0 voice"), "a set that changes nothing is a mistake");
    assert!(refused("class set bond0 voice --member eth3 --no-members"));
}

#[test]
fn classes_are_removed_and_shown() {
    let del = ClassDel { bond: name("bond0"), name: name("voice") };
    assert_eq!(request("class del bond0 voice"), Request::ClassDel(del));
    assert!(refused("class del voice"));
    assert_eq!(request("class show"), Request::ClassShow { bond: None });
    assert_eq!(request("class show bond0"), Request::ClassShow { bond: Some(name("bond0")) });
}

#[test]
fn run_leaves_the_command_alone() {
    let Word::Run(args) = parse("run --class voice -- ls --json -l").word else { panic!("no run") };
    assert_eq!((args.bond, args.class.as_str()), (None, "voice"));
    assert_eq!(args.command, ["ls", "--json", "-l"]);
    let Word::Run(args) = parse("run --bond bond0 --class voice -- ls").word else { panic!("no run") };
    assert_eq!(args.bond.as_deref(), Some("bond0"));
    for line in ["run --class voice", "run -- ls", "run --class voice ls", "run --class rest -- ls"] {
        assert!(refused(line), "{line}");
    }
}

#[test]
fn records_take_an_optional_name() {
    assert!(matches!(parse("show").word, Word::Show { name: None }));
    assert!(matches!(parse("show bond0").word, Word::Show { name: Some(name) } if name == "bond0"));
    assert!(
        matches!(parse("peers bond0").word, Word::Peers { bond: Some(name), peer: None } if name == "bond0")
    );
    let lanes = parse("lanes bond0 --peer 198.18.0.2").word;
    assert!(matches!(lanes, Word::Lanes { bond: Some(name), peer: Some(_) } if name == "bond0"));
    assert!(matches!(parse("stats bond0 --all").word, Word::Stats(args) if args.all && args.name.is_some()));
    assert!(matches!(parse("stats --latency").word, Word::Stats(args) if args.latency));
    assert!(refused("stats --latency --all"));
    assert!(matches!(parse("stats").word, Word::Stats(args) if !args.all && args.name.is_none()));
}

#[test]
fn monitor_and_check_take_names() {
    assert!(matches!(parse("monitor").word, Word::Monitor { bond: None }));
    assert!(matches!(parse("monitor bond0").word, Word::Monitor { bond: Some(name) } if name == "bond0"));
    assert!(refused("monitor bond0 bond1"));
    assert!(matches!(parse("check").word, Word::Check { interfaces } if interfaces.is_empty()));
    assert!(matches!(parse("check a b --json").word, Word::Check { interfaces } if interfaces == ["a", "b"]));
    assert!(refused("check a/b"));
}

#[test]
fn explain_takes_a_flow_and_what_is_beside_it() {
    let Word::Explain(explain) = parse("explain bond0 'tcp 198.18.0.1 > 198.18.0.2:445'").word else {
        panic!("no explain")
    };
    assert_eq!((explain.dscp, explain.priority, explain.fwmark), (None, None, None));
    assert_eq!(explain.flow.to_string(), "tcp 198.18.0.1:49152 > 198.18.0.2:445");
    let line = "explain bond0 'icmp 2001:db8::1 > 2001:db8::2' --dscp ef --priority 6 --fwmark 0x10";
    let Word::Explain(explain) = parse(line).word else { panic!("no explain") };
    assert_eq!((explain.dscp, explain.priority, explain.fwmark), (Some(46), Some(6), Some(16)));
    for wrong in ["explain bond0", "explain bond0 tcp", "explain bond0 tcp --dscp 64"] {
        assert!(refused(wrong), "{wrong}");
    }
}

#[test]
fn global_options_stand_anywhere() {
    for line in [
        "--socket /tmp/s --json bond del bond0",
        "bond --socket /tmp/s del --json bond0",
        "bond del bond0 --json --socket /tmp/s",
        "bond del --socket=/tmp/s bond0 --json",
    ] {
        let cli = parse(line);
        assert_eq!(cli.anywhere.socket, Path::new("/tmp/s"), "{line}");
        assert!(cli.anywhere.json, "{line}");
    }
    assert!(!parse("show").anywhere.json);
}

#[test]
fn daemon_options() {
    let daemon = |line: &str| match parse(line).word {
        Word::Daemon(args) => args,
        other => panic!("{other:?}"),
    };
    let args = daemon("daemon");
    assert_eq!((args.state, args.log.as_str(), args.hook), (None, "info", HookArg::Auto));
    let args = daemon("daemon --state /run/x --log linkbraid=debug --hook clsact");
    assert_eq!(args.state.as_deref(), Some(Path::new("/run/x")));
    assert_eq!((args.log.as_str(), args.hook), ("linkbraid=debug", HookArg::Clsact));
    assert_eq!(daemon("daemon --hook tcx").hook, HookArg::Tcx);
    assert!(refused("daemon --hook xdp"));
}

#[test]
fn modes_that_there_are_not_are_refused() {
    for line in ["bond set bond0 --auth maybe", "bond set bond0 --auth Require", "fabric set fab0 --auth on"]
    {
        assert!(refused(line), "{line}");
    }
    parse("bond set bond0 --auth require");
}

#[test]
fn prefixes_of_words_are_refused() {
    for line in ["bon del bond0", "bond de bond0", "sho", "bond add bond0 --memb eth1", "show --js"] {
        assert!(refused(line), "{line}");
    }
}

/// Walks all words; `check` sees each with its full name.
fn each_word(command: &clap::Command, name: &str, check: &mut impl FnMut(&clap::Command, &str)) {
    check(command, name);
    for word in command.get_subcommands() {
        each_word(word, &format!("{name} {}", word.get_name()), check);
    }
}

#[test]
fn every_word_and_option_has_help_and_every_shown_word_an_example() {
    each_word(&Cli::command(), "linkbraid", &mut |command, name| {
        assert!(command.get_about().is_some(), "{name} says nothing about itself");
        for argument in command.get_arguments() {
            assert!(argument.get_help().is_some(), "{name} {} has no help", argument.get_id());
        }
        if !command.is_hide_set() {
            let after = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(after.starts_with("Example"), "{name} has no example");
            assert!(after.contains("\n  linkbraid ") || name == "linkbraid", "{name}");
        }
    });
}

#[test]
fn examples_are_valid_and_help_fits_80_columns() {
    each_word(&Cli::command(), "linkbraid", &mut |command, name| {
        for line in command.get_after_help().map(ToString::to_string).unwrap_or_default().lines() {
            assert!(line.chars().count() <= 80, "{name}: too wide: {line}");
            let Some(example) = line.strip_prefix("  linkbraid ") else { continue };
            // A remark stands after at least three spaces.
            let example = example.split("   ").next().unwrap_or_default();
            parse(example);
        }
    });
}

/// The documents, but for the reference, which is made from the command itself.
fn pages(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("readable").flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("reference") {
            pages(&path, into);
        } else if path.extension().is_some_and(|end| end == "md") {
            into.push(path);
        }
    }
}

#[test]
fn commands_in_the_documents_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut all = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    pages(&root.join("docs"), &mut all);
    let (mut typed, mut named) = (0, 0);
    for path in all {
        let page = std::fs::read_to_string(&path).expect("readable");
        // What is typed stands in a block of its own. A remark follows `#` or three spaces.
        for line in page.lines().filter_map(|line| line.strip_prefix("    linkbraid ")) {
            let typed_line = line.split(" #").next().and_then(|line| line.split("   ").next());
            parse(typed_line.unwrap_or_default());
            typed += 1;
        }
        // In a sentence, options may be left out: only the words are looked at.
        for line in page.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("linkbraid ")) {
            let mut command = Cli::command();
            for word in line.split_whitespace() {
                let Some(inner) = command.find_subcommand(word).cloned() else {
                    let is_word = command.has_subcommands() && word.chars().all(|c| c.is_ascii_lowercase());
                    assert!(!is_word, "{}: '{line}': no word '{word}'", path.display());
                    break;
                };
                command = inner;
            }
            named += 1;
        }
    }
    assert!(typed >= 60 && named >= 60, "the documents have another form now: {typed}, {named}");
}

#[test]
fn lab_words() {
    let Word::Lab(LabVerb::Exec(args)) = parse("lab exec a --lab mine -- ls --json -l").word else {
        panic!("no exec")
    };
    assert_eq!((args.host.as_str(), args.lab.as_str()), ("a", "mine"));
    assert_eq!(args.command, ["ls", "--json", "-l"]);
    assert!(!parse("lab exec a -- ls --json").anywhere.json, "what follows -- is not ours");
    assert!(refused("lab exec a"));
    assert!(refused("lab exec a ls"));
    assert!(matches!(parse("lab down").word, Word::Lab(LabVerb::Down { name }) if name == "lab"));
    assert!(matches!(parse("lab down mine").word, Word::Lab(LabVerb::Down { name }) if name == "mine"));
    let Word::Lab(LabVerb::Up(args)) = parse("lab up mine --hosts 3 --links 2 --rate 1gbit --plain 1").word
    else {
        panic!("no up")
    };
    assert_eq!((args.name.as_str(), args.hosts, args.links, args.plain), ("mine", 3, 2, 1));
    assert_eq!(args.rate.0, Some(1000));
}

#[test]
fn demo_options() {
    let demo = |line: &str| match parse(line).word {
        Word::Lab(LabVerb::Demo(args)) => (args.links, args.rate, args.seconds, args.cc),
        other => panic!("{other:?}"),
    };
    assert_eq!(demo("lab demo"), (4, 100, 8, CcArg::Cubic));
    assert_eq!(demo("lab demo --links 2 --rate 1gbit --seconds 3 --cc bbr"), (2, 1000, 3, CcArg::Bbr));
    assert!(refused("lab demo --rate none"));
    assert!(refused("lab demo --cc reno"));
}

#[test]
fn a_request_tells_the_command_that_makes_it() {
    for line in [
        "bond add bond0 --member eth1,eth2 --address 198.18.0.1/24 --address 2001:db8::1/64 --policy flow --mtu 9000 \
         --stripe 200us --damping off --move-address --probes off --probe-interval 20ms --probe-multiplier 5 \
         --up-delay 1s --class urgent=eth2",
        "bond set bond0 --policy active-backup --mtu 1500 --stripe 4400B --damping on --probes on --latency off \
         --address 198.18.0.1/24",
        "bond set bond0 --stripe auto --no-addresses",
        "bond del bond0",
        "member add bond0 eth3 --weight 100 --class voice --move-address --force",
        "member set bond0 eth3 --weight auto",
        "member del bond0 eth3 --force",
        "class add bond0 voice --member eth3,eth4 --match dscp=ef --match udp-port=5000-5010,host=198.18.0.0/24 \
         --policy mirror --fallback block --borrow idle",
        "class set bond0 voice --no-members --policy spread --fallback share --borrow never",
        "class set bond0 voice --member eth4 --match fwmark=0x1/0xff",
        "class del bond0 voice",
        "fabric add fab0 --node 1 --nodes 3 --transport udp:/etc/fab0 --mtu 9000 --poll busy --queues 2 \
         --mac 02:00:00:00:00:01 --address 198.18.0.1/24 --address 2001:db8::1/64",
        "fabric set fab0 --mtu 1500 --poll sleep --nodes 4",
        "fabric set fab0 --address 198.18.0.2/24 --address 2001:db8::2/64",
        "fabric set fab0 --no-addresses",
        "fabric del fab0",
    ] {
        let asked = request(line);
        let command = asked.command();
        let words = command.strip_prefix("linkbraid ").expect("a command line");
        assert_eq!(request(words), asked, "{command}");
        assert_eq!(words.split(' ').count(), line.split_whitespace().count(), "{command}");
    }
    let place = "shm:/dev/shm/a b";
    let Request::FabricAdd(add) = request("fabric add fab0 --node 0 --nodes 2 --transport shm:x") else {
        panic!()
    };
    let command = Request::FabricAdd(linkbraid_api::FabricAdd { transport: place.into(), ..add }).command();
    assert!(command.ends_with("--transport 'shm:/dev/shm/a b'"), "{command}");
}

#[test]
fn a_change_may_wait_to_be_confirmed() {
    let plain = request("bond del bond0");
    let Request::Tentative(tentative) = request("bond del bond0 --confirm 60s") else { panic!() };
    assert_eq!((*tentative.request, tentative.confirm_ms), (plain, Millis(60_000)));
    for line in ["bond set bond0 --mtu 1500 --confirm 5s", "member add bond0 eth1 --confirm 2500ms"] {
        assert_eq!(request(line).command(), format!("linkbraid {line}"));
    }
    let Word::Apply(args) = parse("apply --confirm 1s").word else { panic!() };
    assert_eq!(args.within.confirm, Some(Millis(1000)));
    assert_eq!(request("confirm --undo").command(), "linkbraid confirm --undo");
    assert!(refused("bond del bond0 --confirm 0s") && refused("show --confirm 60s"));
    let request = Box::new(Request::Show { name: None });
    let nested = Request::Tentative(Tentative { request, confirm_ms: Millis(1000) });
    let nested = Request::read(Method::try_from(&nested).unwrap());
    assert!(nested.unwrap_err().cause.contains("only a change"));
}

#[test]
fn apply_and_the_file_of_the_daemon() {
    let Word::Apply(args) = parse("apply /etc/linkbraid.toml --dry-run").word else { panic!() };
    assert_eq!((args.files.as_slice(), args.dry_run), (&["/etc/linkbraid.toml".into()][..], true));
    let Word::Daemon(args) = parse("daemon --config /etc/linkbraid.toml --config /etc/linkbraid").word else {
        panic!()
    };
    assert_eq!(args.config, linkbraid_api::CONFIG_PATHS.map(std::path::PathBuf::from));
    assert!(refused("bond set bond0 --address 198.18.0.1/24 --no-addresses"));
}
