use super::{Document, Part};
use crate::{
    Auth, Borrow, ConfigFile, Error, Fallback, Policy, Poll, Stripe, Weight, tests::name, value::Value as _,
};

fn files(all: &[(&str, &str)]) -> Result<Document, Error> {
    let file = |(file, text): &(&str, &str)| ConfigFile { file: (*file).into(), text: (*text).into() };
    Document::read(&all.iter().map(file).collect::<Vec<_>>())
}

/// One file.
fn one(text: &str) -> Result<Document, Error> {
    files(&[("f", text)])
}

const WHOLE: &str = r#"
metrics = "127.0.0.1:9919"

[fabric.fab0]
node = 0
nodes = 0x10
transport = "shm:/run/linkbraid/fab0"
mtu = 9000
poll = "busy"
queues = 2
mac = "02:00:00:00:00:0A"

[bond.bond0]
member = [
    "eth1",
    { name = "eth2", weight = 100 },
    { name = "eth3", class = "voice", weight = "auto", force = true },
    "fab0",
]
address = ["198.18.0.1/24", "2001:db8::1/64"]
policy = "flow"
mtu = 9_000
stripe = "200us"
damping = "off"
move-address = true
probes = false
probe-interval = "20ms"
probe-multiplier = 5
up-delay = "1s"
latency = true
published-only = true
key = "/etc/linkbraid/bond0.key"
auth = "permit"

[bond.bond0.class.voice]
match = ["dscp=ef", "udp-port=5004"]
policy = "mirror"
fallback = "block"
borrow = "idle"

[bond.bond0.class.bulk]
member = "eth2"
match = "tcp-port=873"
"#;

#[test]
fn all_options_are_read() {
    let read = one(WHOLE).unwrap();
    let fabric = &read.config.fabrics["fab0"];
    assert_eq!((fabric.node, fabric.nodes, fabric.settings().mtu.0, fabric.queues), (0, 16, 9000, Some(2)));
    assert_eq!((fabric.settings().poll, fabric.mac.as_deref()), (Poll::Busy, Some("02:00:00:00:00:0a")));
    let bond = &read.config.bonds["bond0"];
    let members: Vec<_> = bond
        .members
        .iter()
        .map(|m| (m.interface.as_str(), m.settings.weight, m.class.as_deref(), m.force))
        .collect();
    let expected = [
        ("eth1", Weight::Auto, None, false),
        ("eth2", Weight::Mbit(100), Some("bulk"), false),
        ("eth3", Weight::Auto, Some("voice"), true),
        ("fab0", Weight::Auto, None, false),
    ];
    assert_eq!(members, expected);
    assert_eq!(bond.addresses, ["198.18.0.1/24", "2001:db8::1/64"]);
    assert_eq!(
        (bond.settings.policy, bond.mtu, bond.settings.stripe),
        (Policy::Flow, Some(9000), Stripe::Us(200))
    );
    assert_eq!((bond.settings.damping, bond.move_address, bond.settings.latency), (false, true, true));
    assert!(bond.settings.published_only);
    assert_eq!(
        (bond.settings.key.text().as_str(), bond.settings.auth),
        ("/etc/linkbraid/bond0.key", Auth::Permit)
    );
    let set = bond.settings.inspector;
    assert_eq!((set.probes, set.probe_interval.0, set.probe_multiplier.0), (false, 20, 5));
    assert_eq!(set.up_delay.0, 1000);
    let voice = &bond.classes[0];
    assert_eq!((voice.name.as_str(), voice.rules.len(), voice.settings.policy), ("voice", 2, Policy::Mirror));
    assert_eq!((voice.settings.fallback, voice.settings.borrow), (Fallback::Block, Borrow::Idle));
    assert_eq!(bond.classes[1].name, "bulk", "in the order of the file, not of the alphabet");
    let line = |object: &str, part: Part| read.find(object, &part).map(|place| place.line);
    let (metrics, place) = read.metrics.as_ref().expect("it is named");
    assert_eq!((metrics.to_string().as_str(), place.line), ("127.0.0.1:9919", 2));
    assert_eq!(line("fab0", Part::Whole), Some(4));
    assert_eq!(line("bond0", Part::Member(name("eth2"))), Some(16));
    assert_eq!(line("bond0", Part::Class(name("bulk"))), Some(41));
    assert_eq!(read.place("bond0", &Part::Member(name("eth9"))), "f:13");
    assert_eq!(read.place("bond9", &Part::Whole), "f");
}

#[test]
fn what_is_left_out_has_the_defaults_of_the_command() {
    let read = one("[bond.b]\nmember = 'eth1'\n").unwrap();
    let bond = &read.config.bonds["b"];
    assert_eq!((&bond.settings, bond.mtu), (&crate::BondSettings::default(), None));
    assert!(one("").unwrap().config == super::Config::default());
}

/// Text, the object and what of the refusal, and what is in the cause.
const REFUSED: [(&str, &str, &str, &str); 35] = [
    ("[bond.b\n", "f:1", "not TOML", ""),
    ("\n[bond.b]\nmember = ['a']\nmember = ['b']\n", "f:4", "not TOML", "duplicate key"),
    ("[bond.b]\nmember = ['a']\n[bond.b]\n", "f:3", "not TOML", "duplicate key"),
    ("\nbonds = 1\n", "f:2", "key 'bonds'", "no such key; allowed are bond, fabric, metrics"),
    ("\nmetrics = 'x:1'\n", "f:2", "key 'metrics'", "'x:1' is no address with a port"),
    ("metrics = 9919\n", "f:1", "key 'metrics'", "it is a number; write a string"),
    ("bond = 1\n", "f:1", "key 'bond'", "it is a number; write [bond.NAME]"),
    ("[bond]\nb = 'x'\n", "f:2", "bond 'b'", "it is a string; write a table"),
    ("[bond.\"a b\"]\n", "f:1", "bond 'a b'", "cannot be an interface name"),
    (
        "[bond.b]\nmember = ['a']\nmut = 9\n",
        "f:3",
        "bond 'b': key 'mut'",
        "no such key; allowed are member, ",
    ),
    (
        "[bond.b]\nmember = ['a']\nmtu = '9'\n",
        "f:3",
        "bond 'b': key 'mtu'",
        "it is a string; write a whole number",
    ),
    (
        "[bond.b]\nmember = ['a']\nmtu = 9\n",
        "f:3",
        "bond 'b': key 'mtu'",
        "'9' is outside the allowed range 1280",
    ),
    ("[bond.b]\nmember = ['a']\nmtu = -9\n", "f:3", "bond 'b': key 'mtu'", "'-9' is not a whole number"),
    (
        "[bond.b]\nmember = ['a']\nmtu = 1500.5\n",
        "f:3",
        "bond 'b': key 'mtu'",
        "it is a number with a fraction",
    ),
    ("[bond.b]\nmember = ['a']\npolicy = 'mirror'\n", "f:3", "bond 'b': key 'policy'", "of classes only"),
    (
        "[bond.b]\nmember = ['a']\ndamping = 'yes'\n",
        "f:3",
        "bond 'b': key 'damping'",
        "allowed are on and off",
    ),
    (
        "[bond.b]\nmember = ['a']\nauth = 'maybe'\n",
        "f:3",
        "bond 'b': key 'auth'",
        "allowed are off, permit and require",
    ),
    (
        "[bond.b]\nmember = ['a']\nstripe = 200\n",
        "f:3",
        "bond 'b': key 'stripe'",
        "it is a number; write a string",
    ),
    (
        "[bond.b]\nmember = ['a']\naddress = '198.18.0.1'\n",
        "f:3",
        "bond 'b': key 'address'",
        "has no prefix length",
    ),
    (
        "[bond.b]\nmember = ['a']\naddress = ['198.18.0.1/8', '198.18.0.1/8']\n",
        "f:3",
        "bond 'b': address '198.18.0.1/8'",
        "twice",
    ),
    (
        "[fabric.f]\nnode = 0\nnodes = 2\ntransport = 'udp:/f'\naddress = ['198.18.0.1/8', '198.18.0.1/8']\n",
        "f:5",
        "fabric 'f': address '198.18.0.1/8'",
        "twice",
    ),
    ("[bond.b]\n", "f:1", "bond 'b'", "0 members; allowed are 1 to 16"),
    ("[bond.b]\nmember = [\n'a',\n7]\n", "f:4", "bond 'b': key 'member'", "it is a number; write a string"),
    ("[bond.b]\nmember = [\n'a',\n'a']\n", "f:4", "bond 'b': member 'a'", "it is named twice"),
    ("[bond.b]\nmember = [{ weight = 1 }]\n", "f:2", "bond 'b': member", "the key 'name' is missing"),
    (
        "[bond.b]\nmember = [{ name = 'a', weight = 0 }]\n",
        "f:2",
        "bond 'b': member: key 'weight'",
        "without traffic",
    ),
    (
        "[bond.b]\nmember = ['a']\n[bond.c]\nmember = ['x','a']\n",
        "f:4",
        "bond 'c': member 'a'",
        "line 2 gives it to bond 'b'",
    ),
    (
        "[bond.b]\nmember = ['c']\n[bond.c]\nmember = ['x']\n",
        "f:2",
        "bond 'b': member 'c'",
        "it is itself a bond",
    ),
    (
        "[fabric.b]\nnode = 0\nnodes = 2\ntransport = 'shm:x'\n[bond.b]\nmember = ['x']\n",
        "f:5",
        "bond 'b'",
        "line 1 has a fabric",
    ),
    (
        "[fabric.f]\nnode = 2\nnodes = 2\ntransport = 'shm:x'\n",
        "f:1",
        "fabric 'f'",
        "outside the range 0 to 1 of 2 nodes",
    ),
    ("[fabric.f]\nnode = 0\nnodes = 2\n", "f:1", "fabric 'f'", "the key 'transport' is missing"),
    (
        "[bond.b]\nmember = ['a','c']\n[bond.b.class.v]\nmember = ['c']\n",
        "f:3",
        "bond 'b': class 'v'",
        "without rules",
    ),
    (
        "[bond.b]\nmember = ['a']\n[bond.b.class.v]\nmatch = 'dscp=ef'\nmember = ['c']\n",
        "f:5",
        "bond 'b': class 'v': member 'c'",
        "not among",
    ),
    (
        "[bond.b]\nmember = ['a']\n[bond.b.class.v]\nmatch = 'dscp=ef'\nmember = ['a']\n",
        "f:1",
        "bond 'b'",
        "no member for the rest",
    ),
    (
        "[bond.b]\nmember = ['a']\n[bond.b.class.v]\nmatch = ['dscp=ef', 'x=1']\n",
        "f:4",
        "bond 'b': class 'v': key 'match'",
        "no such condition",
    ),
];

#[test]
fn what_cannot_be_is_refused_with_its_line() {
    for (text, object, what, cause) in REFUSED {
        let error = one(text).expect_err(text);
        assert_eq!((error.object.as_str(), error.what.as_str()), (object, what), "{text}: {error}");
        assert!(error.cause.contains(cause), "{text}: {error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        assert_eq!(error.hint.as_deref(), Some("linkbraid apply --help"));
    }
}

#[test]
fn files_are_put_together_and_each_names_its_own() {
    let fabric = "[fabric.c]\nnode = 0\nnodes = 2\ntransport = 'shm:x'\n";
    let both =
        [("1", "[bond.a]\nmember = ['x', 'c']\n"), ("2", "\n[bond.b]\nmember = ['y']\n"), ("3", fabric)];
    let read = files(&both).unwrap();
    assert_eq!((read.config.bonds.len(), read.config.fabrics.len(), read.name().as_str()), (2, 1, "1, 2, 3"));
    assert_eq!(read.place("b", &Part::Member(name("y"))), "2:3");
    assert_eq!(read.place("z", &Part::Whole), "1, 2, 3");
    for (text, refusal) in [
        ("\n[bond.a]\nmember = ['z']\n", "2:2: bond 'a': 1:1 has a bond of this name"),
        (
            "[fabric.a]\nnode = 0\nnodes = 2\ntransport = 'shm:y'\n",
            "2:1: fabric 'a': 1:1 has a bond of this name",
        ),
        ("[bond.b]\nmember = ['z', 'x']\n", "2:2: bond 'b': member 'x': 1:2 gives it to bond 'a'"),
        ("[bond.c]\nmember = ['z']\n", "1:2: bond 'a': member 'c': it is itself a bond"),
        ("bond = 1\n", "2:1: key 'bond': it is a number; write [bond.NAME]"),
    ] {
        assert_eq!(files(&[both[0], ("2", text)]).expect_err(text).to_string(), refusal);
    }
    let error = files(&[("1", "metrics = '/m'\n"), ("2", "\nmetrics = '127.0.0.1:9919'\n")]).unwrap_err();
    assert_eq!(error.to_string(), "2:2: key 'metrics': 1:1 names an address already");
    let half = "#".repeat(crate::limits::CONFIG_BYTES_MAX / 2 + 1);
    assert_eq!(files(&[("1", &half), ("2", &half)]).unwrap_err().what, "too long");
}

#[test]
fn other_refusals_of_classes() {
    let bond = "[bond.b]\nmember = ['a', 'c', { name = 'd', class = 'w' }]\n";
    let twice =
        "[bond.b.class.v]\nmatch = 'dscp=ef'\nmember = ['c','d']\n[bond.b.class.w]\nmatch = 'dscp=1'\n";
    let error = one(&format!("{bond}{twice}")).unwrap_err();
    assert_eq!(error.to_string(), "f:5: bond 'b': class 'v': member 'd': it is in class 'w' already");
    let error = one(bond).unwrap_err();
    assert_eq!(error.to_string(), "f:1: bond 'b': member 'd' is for class 'w', which the bond has not");
    let many: String = (0..8).map(|i| format!("[bond.b.class.c{i}]\nmatch = 'dscp={i}'\n")).collect();
    let error = one(&format!("[bond.b]\nmember = 'a'\n{many}")).unwrap_err();
    assert_eq!(error.to_string(), "f:1: bond 'b': 8 classes; allowed are up to 7");
    let long = "#".repeat(crate::limits::CONFIG_BYTES_MAX + 1);
    assert_eq!(one(&long).unwrap_err().what, "too long");
}

proptest::proptest! {
    /// Whatever is in a file: it is read, or refused in one line.
    #[test]
    fn nothing_panics(text in "(\\[(bond|fabric)\\.[a-c]{1,2}\\]\n|member = \\[('[a-c]',? ?){0,3}\\]\n|node = -?[0-9]{0,4}\n|.{0,12}\n){0,8}") {
        if let Err(error) = one(&text) {
            proptest::prop_assert!(error.to_string().starts_with("f:"));
        }
    }
}

#[test]
fn the_examples_can_be_applied() {
    let example = include_str!("../../../../dist/linkbraid.toml");
    assert_eq!(one(example).unwrap().config.bonds["bond0"].members.len(), 2);
    // What is commented out, too.
    let whole: Vec<&str> = example
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.starts_with(' ') => rest,
            _ => line,
        })
        .collect();
    let whole = one(&whole.join("\n")).unwrap().config;
    assert_eq!((whole.bonds["bond0"].classes.len(), whole.fabrics.len()), (1, 1));
    let page = include_str!("../../../../docs/config.md");
    let text = page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let config = one(text).unwrap().config;
    let bond = &config.bonds["bond0"];
    assert_eq!((bond.members.len(), bond.classes.len(), config.fabrics.len()), (4, 1, 1));
}
