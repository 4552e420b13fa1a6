use super::{Change, Step, diff};
use crate::operations::desired::{Current, merge::merge, step::Held};
use linkbraid_api::{
    Auth, BondSettings, ClassSettings, ConfigFile, FabricAdd, FabricOptions, InspectorSettings, KeySource,
    LinkName, MemberSettings, Policy, Poll, Rule, Stripe, Weight,
    config::{BondConfig, ClassConfig, Config, Document, MemberConfig},
    value::Number,
};
use proptest::{collection::btree_map, prelude::*};
use std::collections::{BTreeMap, BTreeSet};

/// What a file says, complete.
fn config(text: &str) -> Config {
    let mut config = Document::read(&[ConfigFile { file: "f".into(), text: text.into() }]).unwrap().config;
    for bond in config.bonds.values_mut() {
        bond.mtu.get_or_insert(1500);
    }
    for fabric in config.fabrics.values_mut() {
        fabric.queues.get_or_insert(1);
    }
    config
}

fn commands(from: &str, to: &str) -> Vec<String> {
    diff(&config(from), &config(to)).iter().map(|step| step.request().command()).collect()
}

const FABRIC: &str = "[fabric.fab0]\nnode = 0\nnodes = 2\ntransport = 'shm:/dev/shm/f'\n";

#[test]
fn from_nothing_fabrics_come_before_their_bonds() {
    let bond = "[bond.bond0]\nmember = ['eth1', { name = 'fab0', weight = 100 }, 'eth2']\naddress = '198.18.0.1/24'
        probe-interval = '20ms'\nlatency = true\n[bond.bond0.class.voice]\nmember = 'eth2'\nmatch = 'dscp=ef'\n";
    let expected = [
        "linkbraid fabric add fab0 --node 0 --nodes 2 --transport shm:/dev/shm/f --queues 1",
        "linkbraid bond add bond0 --member eth1,fab0,eth2 --address 198.18.0.1/24 --latency on --mtu 1500 --probe-interval 20ms",
        "linkbraid class add bond0 voice --member eth2 --match dscp=ef",
        "linkbraid member set bond0 fab0 --weight 100",
    ];
    let whole = format!("{FABRIC}{bond}");
    assert_eq!(commands("", &whole), expected);
    assert!(commands(&whole, &whole).is_empty());
    let gone = commands(&whole, "");
    assert_eq!(gone, ["linkbraid bond del bond0", "linkbraid fabric del fab0"]);
}

#[test]
fn what_can_be_changed_is_not_made_anew() {
    let bond = |rest: &str| format!("[bond.b]\nmember = ['a', 'c']\n{rest}");
    let set = |rest: &str| commands(&bond(""), &bond(rest));
    assert_eq!(set("policy = 'flow'\nmtu = 9000"), ["linkbraid bond set b --policy flow --mtu 9000"]);
    assert_eq!(set("up-delay = '1s'\ndamping = false"), ["linkbraid bond set b --damping off --up-delay 1s"]);
    assert_eq!(set("address = '198.18.0.1/24'"), ["linkbraid bond set b --address 198.18.0.1/24"]);
    assert_eq!(
        commands(&bond("address = '198.18.0.1/24'"), &bond("")),
        ["linkbraid bond set b --no-addresses"]
    );
    assert_eq!(
        commands("[bond.b]\nmember = ['a','c']", "[bond.b]\nmember = ['d', { name = 'c', weight = 5 }]"),
        ["linkbraid member add b d", "linkbraid member del b a", "linkbraid member set b c --weight 5"]
    );
    let more = FABRIC.replace("nodes = 2", "nodes = 3\npoll = 'busy'\nmtu = 9000");
    assert_eq!(commands(FABRIC, &more), ["linkbraid fabric set fab0 --mtu 9000 --poll busy --nodes 3"]);
    let member = "[bond.b]\nmember = ['fab0']\n";
    assert_eq!(
        commands(&format!("{FABRIC}{member}"), &format!("{more}{member}")),
        ["linkbraid fabric set fab0 --poll busy --nodes 3"],
        "the MTU of a member is its bond's"
    );
}

#[test]
fn links_change_hands_without_a_bond_that_is_left_bare() {
    assert_eq!(
        commands("[bond.b]\nmember = ['a','c']", "[bond.x]\nmember = ['a','c']"),
        ["linkbraid bond del b", "linkbraid bond add x --member a,c --mtu 1500"]
    );
    assert_eq!(
        commands(
            "[bond.b]\nmember = ['a']\n[bond.x]\nmember = ['c','d']",
            "[bond.b]\nmember = ['e','c']\n[bond.x]\nmember = ['a','d']"
        ),
        [
            "linkbraid member add b e",
            "linkbraid member del b a",
            "linkbraid member del x c",
            "linkbraid member add b c",
            "linkbraid member add x a",
        ]
    );
    let classes = |voice: &str, bulk: &str, rest: &str| {
        format!(
            "[bond.b]\nmember = ['a','c','d','e']\n[bond.b.class.voice]\nmember = [{voice}]\nmatch = 'dscp=ef'\n\
             [bond.b.class.bulk]\nmember = [{bulk}]\nmatch = 'dscp=le'\n{rest}"
        )
    };
    assert_eq!(
        commands(&classes("'a'", "'c'", ""), &classes("'c'", "'a'", "")),
        [
            "linkbraid class set b voice --no-members",
            "linkbraid class set b bulk --no-members",
            "linkbraid class set b voice --member c",
            "linkbraid class set b bulk --member a",
        ]
    );
    let voice = "[bond.b]\nmember = ['a','c']\n[bond.b.class.voice]\nmatch = 'dscp=ef'\n";
    let first = "[bond.b]\nmember = ['a','c']\n[bond.b.class.bulk]\nmatch = 'dscp=le'\n[bond.b.class.voice]\nmatch = 'dscp=ef'\n";
    assert_eq!(
        commands(voice, first),
        [
            "linkbraid class del b voice",
            "linkbraid class add b bulk --match dscp=le",
            "linkbraid class add b voice --match dscp=ef",
        ],
        "rules are tried in the order of the file"
    );
}

#[test]
fn two_bonds_may_wait_for_one_link() {
    let mut has = config("[bond.b]\nmember = ['a', 'c']\n[bond.x]\nmember = ['d', 'e']\n");
    let mut waits = has.bonds["b"].members[0].clone();
    waits.absent = true;
    has.bonds.get_mut("x").unwrap().members.push(waits.clone());
    assert!(diff(&has, &has).is_empty(), "one has it, and the other waits");
    has.bonds.get_mut("b").unwrap().members[0] = waits;
    assert!(diff(&has, &has).is_empty(), "both wait");
    let mut wanted = has.clone();
    wanted.bonds.get_mut("x").unwrap().members[2].absent = false;
    let commands: Vec<String> = diff(&has, &wanted).iter().map(|step| step.request().command()).collect();
    assert_eq!(commands, ["linkbraid member add x a"]);
}

const LINKS: [&str; 6] = ["a", "c", "d", "e", "fab0", "fab1"];

fn classes() -> impl Strategy<Value = Vec<ClassConfig>> {
    let class = (0_u8..3, any::<bool>(), any::<bool>());
    (Just(["v", "w", "x"].to_vec()).prop_shuffle(), prop::collection::vec(class, 0..=3)).prop_map(
        |(names, classes)| {
            let make = |(name, (dscp, mirror, block)): (&str, (u8, bool, bool))| ClassConfig {
                name: name.parse().unwrap(),
                rules: vec![Rule { dscp: Some(dscp), ..Rule::default() }],
                settings: ClassSettings {
                    policy: if mirror { Policy::Mirror } else { Policy::Spread },
                    fallback: if block {
                        linkbraid_api::Fallback::Block
                    } else {
                        linkbraid_api::Fallback::Share
                    },
                    ..ClassSettings::default()
                },
                has_members: false,
            };
            names.into_iter().zip(classes).map(make).collect()
        },
    )
}

fn any_addresses() -> impl Strategy<Value = Vec<String>> {
    let addresses = prop::sample::subsequence(vec!["198.18.0.1/24", "198.18.0.2/24"], 0..=2);
    addresses.prop_map(|addresses| addresses.into_iter().map(str::to_owned).collect())
}

fn settings() -> impl Strategy<Value = BondConfig> {
    (classes(), 0_u32..3, any::<[bool; 3]>(), any_addresses()).prop_map(
        |(classes, mtu, [flow, damping, latency], addresses)| BondConfig {
            classes,
            mtu: Some(1500 + mtu),
            settings: BondSettings {
                policy: if flow { Policy::Flow } else { Policy::Spread },
                stripe: if flow { Stripe::Us(100) } else { Stripe::Auto },
                damping,
                latency,
                published_only: flow,
                key: if flow { KeySource::File("/etc/b.key".to_owned()) } else { KeySource::None },
                auth: if flow { Auth::Permit } else { Auth::Off },
                inspector: InspectorSettings {
                    probe_multiplier: Number(if flow { 5 } else { 3 }),
                    ..InspectorSettings::default()
                },
            },
            move_address: true,
            addresses,
            members: Vec::new(),
        },
    )
}

/// Bonds, and who has which link in which class with which weight; fabrics, all of which may be members.
fn any_config() -> impl Strategy<Value = Config> {
    let bonds = btree_map(prop::sample::select(vec!["b0", "b1", "b2"]), settings(), 0..=3);
    let links =
        prop::collection::vec((0_usize..5, 0_usize..5, 0_u32..3, any::<bool>(), 0_usize..9), LINKS.len());
    let fabrics = btree_map(
        prop::sample::select(vec!["fab0", "fab1"]),
        (1500_u32..1502, 0_u16..2, any_addresses()),
        0..=2,
    );
    (bonds, links, fabrics).prop_map(|(bonds, links, fabrics)| {
        let mut config = Config::default();
        for (name, (mtu, poll, addresses)) in fabrics {
            config.fabrics.insert(
                LinkName::of_link(name),
                FabricAdd {
                    name: LinkName::of_link(name),
                    node: 0,
                    nodes: 2,
                    transport: "shm:/dev/shm/f".into(),
                    options: FabricOptions {
                        mtu: (mtu != 1500).then_some(Number(mtu)),
                        poll: (poll != 0).then_some(Poll::Busy),
                        ..FabricOptions::default()
                    },
                    mac: None,
                    queues: Some(1),
                    addresses,
                },
            );
        }
        let mut bonds: Vec<(LinkName, BondConfig)> =
            bonds.into_iter().map(|(name, bond)| (LinkName::of_link(name), bond)).collect();
        for (name, (bond, class, weight, absent, waits)) in LINKS.into_iter().zip(links) {
            if name.starts_with("fab") && !config.fabrics.contains_key(name) {
                continue;
            }
            if let Some((_, other)) = bonds.get_mut(waits).filter(|_| waits != bond) {
                let waits = MemberConfig::new(LinkName::of_link(name));
                other.members.push(MemberConfig { absent: true, ..waits });
            }
            let Some((_, bond)) = bonds.get_mut(bond) else { continue };
            let rest = bond.members.iter().any(|member| member.class.is_none());
            bond.members.push(MemberConfig {
                interface: LinkName::of_link(name),
                settings: MemberSettings {
                    weight: if weight == 0 { Weight::Auto } else { Weight::Mbit(weight) },
                    weight_fixed: false,
                },
                class: bond.classes.get(class).filter(|_| rest).map(|class| class.name.clone()),
                force: false,
                absent,
            });
        }
        for bond in bonds.iter_mut().map(|(_, bond)| bond) {
            for class in &mut bond.classes {
                class.has_members =
                    bond.members.iter().any(|member| member.class.as_ref() == Some(&class.name));
            }
        }
        bonds.retain(|(_, bond)| !bond.members.is_empty());
        config.bonds = bonds.into_iter().collect();
        config
    })
}

/// What does not depend on the way there: the order of members does, and the MTU of members of bonds is those bonds'.
fn essence(config: &Config) -> impl PartialEq + std::fmt::Debug + use<> {
    let member = |member: &MemberConfig| {
        (member.interface.clone(), (format!("{:?}", member.settings.weight), member.class.clone()))
    };
    let bonds: BTreeMap<_, _> = config
        .bonds
        .iter()
        .map(|(name, bond)| {
            let members: BTreeMap<_, _> = bond.members.iter().map(member).collect();
            let addresses: BTreeSet<_> = bond.addresses.iter().cloned().collect();
            let rest = BondConfig { members: Vec::new(), addresses: Vec::new(), ..bond.clone() };
            (name.clone(), (members, addresses, rest))
        })
        .collect();
    let fabrics: Vec<_> = config
        .fabrics
        .values()
        .map(|fabric| {
            let free = config.bonds.values().all(|bond| bond.member(&fabric.name).is_none());
            let mut addresses = if free { fabric.addresses.clone() } else { Vec::new() };
            addresses.sort();
            let options =
                FabricOptions { mtu: fabric.options.mtu.filter(|_| free), ..fabric.options.clone() };
            FabricAdd { options, addresses, ..fabric.clone() }
        })
        .collect();
    (bonds, fabrics)
}

/// A bond whose classes have all its links; it is refused, unless it was so before.
fn bare(config: &Config, name: &str) -> bool {
    config.bonds.get(name).is_some_and(|bond| {
        !bond.members.is_empty() && bond.members.iter().all(|member| member.class.is_some())
    })
}

/// All of it is there, each link in one bond.
fn present(mut config: Config) -> Config {
    let mut seen = BTreeSet::new();
    for bond in config.bonds.values_mut() {
        bond.members.retain(|member| seen.insert(member.interface.clone()));
        bond.members.iter_mut().for_each(|member| member.absent = false);
        for class in &mut bond.classes {
            class.has_members = !bond.members.iter().all(|member| member.class.as_ref() != Some(&class.name));
        }
    }
    config.bonds.retain(|_, bond| bond.members.iter().any(|member| member.class.is_none()));
    config
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever there is and whatever is wanted: the steps lead there, and then there are no more. What is printed of each is
    /// a request that is not refused and has the same effect.
    #[test]
    fn the_steps_lead_there(from in any_config(), to in any_config()) {
        let to = present(to);
        let steps = diff(&from, &to);
        let mut now = from.clone();
        for step in &steps {
            let has = Current { config: now.clone(), ..Current::default() };
            let asked = merge(&has, &step.request());
            // A link that another bond is to have leaves first, also where only links of classes stay.
            let was_bare = |bond: &LinkName| bare(&has.config, bond);
            step.apply(&mut now);
            let asked = asked.map_err(|error| TestCaseError::fail(format!("{step:?}: {error}")))?;
            prop_assert_eq!(essence(&asked), essence(&now), "{:?}", step);
            if let Step::Class { bond, class: Change { to: Some(_), .. } } = step {
                prop_assert!(was_bare(bond) || !bare(&now, bond), "{step:?} leaves nothing for the rest: {:?}", now.bonds[bond]);
            }
        }
        prop_assert_eq!(essence(&now), essence(&to), "{:?}", steps);
        prop_assert!(diff(&now, &to).is_empty(), "{:?}", diff(&now, &to));
        prop_assert!(diff(&from, &from).is_empty(), "{:?}", diff(&from, &from));
    }

    /// Wherever it fails, the inverses of what was done lead back.
    #[test]
    fn the_inverses_lead_back(from in any_config(), to in any_config(), failed in 0_usize..20) {
        let done: Vec<Step> = diff(&from, &present(to)).into_iter().take(failed).collect();
        let commands: Vec<String> = done.iter().map(|step| step.request().command()).collect();
        let mut now = from.clone();
        done.iter().for_each(|step| step.apply(&mut now));
        for step in done.into_iter().rev() {
            step.inverse(&Held::new()).apply(&mut now);
        }
        // That a class was given members stays so.
        let anyhow = |mut config: Config| {
            let classes = config.bonds.values_mut().flat_map(|bond| &mut bond.classes);
            classes.for_each(|class| class.has_members = true);
            config
        };
        prop_assert_eq!(essence(&anyhow(now)), essence(&anyhow(from)), "{:?}", commands);
    }

    /// A bond or fabric that is there and wanted is never made again, unless it is to give up all it has.
    #[test]
    fn nothing_is_made_anew(from in any_config(), to in any_config()) {
        for step in diff(&from, &to) {
            match step {
                Step::Bond(Change { name, to: None, .. }) => prop_assert!(!to.bonds.contains_key(&name)),
                Step::Bond(Change { name, from: None, .. }) => prop_assert!(!from.bonds.contains_key(&name)),
                Step::Fabric(Change { name, to: None, .. }) => prop_assert!(!to.fabrics.contains_key(&name)),
                Step::Fabric(Change { name, from: None, .. }) => {
                    prop_assert!(!from.fabrics.contains_key(&name));
                }
                _ => {}
            }
        }
    }
}
