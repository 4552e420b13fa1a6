use crate::args::Cli;
use clap::{CommandFactory, Parser};
use linkbraid_terminal::refusal;

/// The error line and the hint for a wrong command line.
fn said(words: &[&str]) -> (String, String) {
    let line = std::iter::once("linkbraid").chain(words.iter().copied());
    let error = Cli::try_parse_from(line).expect_err("the command line is right");
    let refusal = refusal(&error, Cli::command(), words.iter().map(|word| (*word).to_owned()));
    (refusal.to_string(), refusal.hint.expect("a usage error has a hint"))
}

#[test]
fn each_mistake_has_one_line_that_names_it() {
    let cases: &[(&[&str], &str, &str)] = &[
        (&["bnod"], "linkbraid: command 'bnod': no such command; did you mean 'bond'", "linkbraid --help"),
        (&["zzz"], "linkbraid: command 'zzz': no such command", "linkbraid --help"),
        (&["bond"], "bond: a command is missing: allowed are add, set, del", "linkbraid bond --help"),
        (&["bond", "ad"], "bond: command 'ad': no such command; did you mean 'add'", "linkbraid bond --help"),
        (&["bond", "add", "bond0"], "bond add: missing: --member IF[,IF...]", "linkbraid bond add --help"),
        (&["bond", "add", "--member", "a"], "bond add: missing: NAME", "linkbraid bond add --help"),
        (
            &["bond", "set", "bond0"],
            "bond set: missing: one of --policy, --stripe, --damping, --latency, --published-only, --key, --auth, --mtu, --probes, \
             --probe-interval, --probe-multiplier, --up-delay, --hold-max, --address, --no-addresses",
            "linkbraid bond set --help",
        ),
        (
            &["daemon", "--metrics", "localhost:9919"],
            "daemon: option '--metrics': 'localhost:9919' is no address with a port; allowed are ADDRESS:PORT, such as \
             127.0.0.1:9919 or [::1]:9919, and the whole path of a socket, such as /run/linkbraid/metrics.sock",
            "linkbraid daemon --help",
        ),
        (
            &["member", "set", "b", "e"],
            "member set: missing: one of --weight, --weight-fixed",
            "linkbraid member set --help",
        ),
        (&["member", "add", "b"], "member add: missing: IF", "linkbraid member add --help"),
        (&["show", "a", "b"], "show: argument 'b': one argument too many", "linkbraid show --help"),
        (
            &["bond", "set", "b", "--polic", "flow"],
            "bond set: option '--polic': no such option; did you mean '--policy'",
            "linkbraid bond set --help",
        ),
        (&["show", "-x"], "show: option '-x': no such option", "linkbraid show --help"),
        (&["show", "--socket"], "show: option '--socket': its value is missing", "linkbraid show --help"),
        (&["show", "--json=1"], "show: option '--json': it takes no value", "linkbraid show --help"),
        (
            &["bond", "set", "b", "--mtu", "9000", "--mtu", "1500"],
            "bond set: option '--mtu': it was given more than once",
            "linkbraid bond set --help",
        ),
        (
            &["bond", "set", "b", "--stripe", "200"],
            "bond set: option '--stripe': '200' has no unit; allowed are auto, 10us to 10ms and 1024B to 64KiB",
            "linkbraid bond set --help",
        ),
        (
            &["bond", "set", "b", "--probe-interval", "50"],
            "bond set: option '--probe-interval': '50' has no unit; allowed are 10ms to 10s",
            "linkbraid bond set --help",
        ),
        (
            &["bond", "add", "b", "--member", "e", "--probe-interval", "11s"],
            "bond add: option '--probe-interval': '11s' is outside the allowed range; allowed are 10ms to 10s",
            "linkbraid bond add --help",
        ),
        (
            &["bond", "set", "b", "--probe-multiplier", "1"],
            "bond set: option '--probe-multiplier': '1' is outside the allowed range 2 to 50",
            "linkbraid bond set --help",
        ),
        (
            &["bond", "set", "b", "--up-delay", "61s"],
            "bond set: option '--up-delay': '61s' is outside the allowed range; allowed are 0ms to 60s",
            "linkbraid bond set --help",
        ),
        (
            &["bond", "set", "b", "--probes", "1"],
            "bond set: option '--probes': '1' is not allowed; allowed are on and off",
            "linkbraid bond set --help",
        ),
        (
            &["member", "set", "b", "e", "--weight", "0"],
            "member set: option '--weight': '0' would leave the member without traffic; allowed are 1 to 1000000 \
             Mbit/s, or auto",
            "linkbraid member set --help",
        ),
        (&["class", "add", "b", "c"], "class add: missing: --match RULE", "linkbraid class add --help"),
        (
            &["class", "add", "b", "c", "--match", "tcp-port=70000"],
            "rule 'tcp-port=70000': port out of range: 1 to 65535",
            "linkbraid class add --help",
        ),
        (
            &["class", "set", "b", "c"],
            "class set: missing: one of --member, --match, --policy, --fallback, --borrow, --precedence, --no-members",
            "linkbraid class set --help",
        ),
        (
            &["class", "set", "b", "c", "--member", "e", "--no-members"],
            "class set: option '--member': it cannot be given together with '--no-members'",
            "linkbraid class set --help",
        ),
        (
            &["class", "del", "b", "rest"],
            "class del: argument 'NAME': 'rest' is not a name for a class; it is that of the default class",
            "linkbraid class del --help",
        ),
        (
            &["class", "del", "b", "A"],
            "class del: argument 'NAME': 'A' is not a name for a class; 1 to 15 of a-z, 0-9, '-' and '_'",
            "linkbraid class del --help",
        ),
        (
            &["class", "set", "b", "c", "--policy", "both"],
            "class set: option '--policy': 'both' is not allowed; allowed are spread, flow, active-backup, mirror, round-robin, hash=layer2, \
             hash=layer2+3, hash=layer3+4 and hash=vlan+srcmac",
            "linkbraid class set --help",
        ),
        (
            &["bond", "set", "b", "--policy", "mirror"],
            "bond set: option '--policy': 'mirror' is of classes only; allowed are spread, flow, active-backup, round-robin, hash=layer2, \
             hash=layer2+3, hash=layer3+4 and hash=vlan+srcmac",
            "linkbraid bond set --help",
        ),
        (
            &["bond", "add", "b", "--member", "e,f", "--class", "urgent"],
            "bond add: option '--class': 'urgent' has no members; write NAME=IF[,IF...], such as urgent=eth3",
            "linkbraid bond add --help",
        ),
        (
            &["stats", "--all", "--latency"],
            "stats: option '--all': it cannot be given together with '--latency'",
            "linkbraid stats --help",
        ),
        (&["run", "--class", "c"], "run: missing: CMD", "linkbraid run --help"),
        (&["run", "--", "ls"], "run: missing: --class NAME", "linkbraid run --help"),
        (
            &["run", "--class", "c", "ls"],
            "run: argument 'ls': write '--' before the command",
            "linkbraid run --help",
        ),
        (&["monitor", "a", "b"], "monitor: argument 'b': one argument too many", "linkbraid monitor --help"),
        (
            &["check", "a/b"],
            "check: argument 'IF': 'a/b' cannot be an interface name; a name has 1 to 15 bytes, no space, '/', ':' or '%'",
            "linkbraid check --help",
        ),
        (
            &["bond", "set", "b", "--damping", "maybe"],
            "bond set: option '--damping': 'maybe' is not allowed; allowed are on and off",
            "linkbraid bond set --help",
        ),
        (
            &["show", "a/b"],
            "show: argument 'NAME': 'a/b' cannot be an interface name; a name has 1 to 15 bytes, no space, '/', ':' or '%'",
            "linkbraid show --help",
        ),
    ];
    for (words, line, hint) in cases {
        assert_eq!(said(words), ((*line).to_owned(), (*hint).to_owned()), "{words:?}");
    }
}

#[test]
fn no_words_at_all() {
    let (line, hint) = said(&[]);
    assert!(
        line.starts_with(
            "linkbraid: a command is missing: allowed are daemon, bond, member, class, fabric, key, apply, confirm, run, leave, show"
        ),
        "{line}"
    );
    assert!(!line.contains("completions"), "hidden words stay hidden: {line}");
    assert_eq!(hint, "linkbraid --help");
}
