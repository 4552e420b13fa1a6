//! A request in the words of the command that asks for it.

use crate::{
    BondAdd, BondSet, Borrow, ClassAdd, ClassSet, FabricAdd, FabricSet, Fallback, InspectorSet, MemberAdd,
    MemberDel, Policy, Poll, Request, Stripe, Weight,
};

impl Request {
    /// The command line that makes this request, without the socket, where it changes something; `linkbraid ...` with the
    /// name of the request in it for those that only ask. Names are as the kernel takes them, so no word needs quotes but
    /// the place of a fabric may.
    pub fn command(&self) -> String {
        let mut line = Line(vec!["linkbraid".to_owned()]);
        match self {
            Self::BondAdd(add) => line.bond_add(add),
            Self::BondSet(set) => line.bond_set(set),
            Self::BondDel(del) => line.words(&["bond", "del", &del.name]),
            Self::MemberAdd(add) => line.member_add(add),
            Self::MemberSet(set) => {
                line.words(&["member", "set", &set.bond, &set.interface]);
                line.option("--weight", set.weight.map(weight));
            }
            Self::MemberDel(MemberDel { bond, interface, force }) => {
                line.words(&["member", "del", bond, interface]);
                line.flag("--force", *force);
            }
            Self::ClassAdd(add) => line.class_add(add),
            Self::ClassSet(set) => line.class_set(set),
            Self::ClassDel(del) => line.words(&["class", "del", &del.bond, &del.name]),
            Self::FabricAdd(add) => line.fabric_add(add),
            Self::FabricSet(set) => line.fabric_set(set),
            Self::FabricDel(del) => line.words(&["fabric", "del", &del.name]),
            // These change nothing, and none of them is a step of anything.
            Self::ClassShow { .. } => line.words(&["class", "show"]),
            Self::Run(run) => line.words(&["run", "--class", &run.class]),
            Self::FabricShow { .. } => line.words(&["fabric", "show"]),
            Self::FabricStats { .. } | Self::Stats { .. } | Self::Latency { .. } => line.words(&["stats"]),
            Self::Apply(apply) => line.words(&["apply", &apply.file]),
            Self::Show { .. } => line.words(&["show"]),
            Self::Peers { .. } => line.words(&["peers"]),
            Self::Lanes { .. } => line.words(&["lanes"]),
            Self::Monitor { .. } => line.words(&["monitor"]),
            Self::Check { .. } => line.words(&["check"]),
        }
        line.0.join(" ")
    }
}

struct Line(Vec<String>);

impl Line {
    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(|word| quoted(word)));
    }

    fn option(&mut self, name: &str, value: Option<impl AsRef<str>>) {
        if let Some(value) = value {
            self.words(&[name, value.as_ref()]);
        }
    }

    fn flag(&mut self, name: &str, on: bool) {
        if on {
            self.words(&[name]);
        }
    }

    fn each(&mut self, name: &str, values: impl IntoIterator<Item = impl AsRef<str>>) {
        values.into_iter().for_each(|value| self.option(name, Some(value)));
    }

    fn list(&mut self, name: &str, values: &[String]) {
        self.option(name, (!values.is_empty()).then(|| values.join(",")));
    }

    fn inspector(&mut self, set: &InspectorSet) {
        self.option("--probes", set.probes.map(switch));
        self.option("--probe-interval", set.probe_interval_ms.map(ms));
        self.option("--probe-multiplier", set.probe_multiplier.map(|number| number.to_string()));
        self.option("--up-delay", set.up_delay_ms.map(ms));
    }

    fn bond_add(&mut self, add: &BondAdd) {
        self.words(&["bond", "add", &add.name]);
        self.list("--member", &add.members);
        self.each("--address", &add.addresses);
        self.option("--policy", unless(&add.policy).map(policy));
        self.option("--mtu", add.mtu.map(|mtu| mtu.to_string()));
        self.option("--stripe", unless(&add.stripe).map(stripe));
        self.option("--damping", (!add.damping).then_some("off"));
        self.flag("--move-address", add.move_address);
        self.inspector(&add.inspector);
        for class in &add.classes {
            self.option("--class", Some(format!("{}={}", class.name, class.members.join(","))));
        }
    }

    fn bond_set(&mut self, set: &BondSet) {
        self.words(&["bond", "set", &set.name]);
        self.option("--policy", set.policy.map(policy));
        self.option("--mtu", set.mtu.map(|mtu| mtu.to_string()));
        self.option("--stripe", set.stripe.map(stripe));
        self.option("--damping", set.damping.map(switch));
        self.inspector(&set.inspector);
        self.option("--latency", set.latency.map(switch));
        self.addresses(set.addresses.as_ref());
    }

    /// Addresses in place of earlier ones.
    fn addresses(&mut self, addresses: Option<&Vec<String>>) {
        match addresses {
            Some(none) if none.is_empty() => self.words(&["--no-addresses"]),
            Some(addresses) => self.each("--address", addresses),
            None => {}
        }
    }

    fn member_add(&mut self, add: &MemberAdd) {
        self.words(&["member", "add", &add.bond, &add.interface]);
        self.option("--weight", unless(&add.weight).map(weight));
        self.option("--class", add.class.as_ref());
        self.flag("--move-address", add.move_address);
        self.flag("--force", add.force);
    }

    fn class_add(&mut self, add: &ClassAdd) {
        self.words(&["class", "add", &add.bond, &add.name]);
        self.list("--member", &add.members);
        self.each("--match", add.rules.iter().map(ToString::to_string));
        self.option("--policy", unless(&add.policy).map(policy));
        self.option("--fallback", unless(&add.fallback).map(fallback));
        self.option("--borrow", unless(&add.borrow).map(borrow));
    }

    fn class_set(&mut self, set: &ClassSet) {
        self.words(&["class", "set", &set.bond, &set.name]);
        match &set.members {
            Some(none) if none.is_empty() => self.words(&["--no-members"]),
            Some(members) => self.list("--member", members),
            None => {}
        }
        self.each("--match", set.rules.iter().flatten().map(ToString::to_string));
        self.option("--policy", set.policy.map(policy));
        self.option("--fallback", set.fallback.map(fallback));
        self.option("--borrow", set.borrow.map(borrow));
    }

    fn fabric_add(&mut self, add: &FabricAdd) {
        self.words(&["fabric", "add", &add.name]);
        self.option("--node", Some(add.node.to_string()));
        self.option("--nodes", Some(add.nodes.to_string()));
        self.option("--transport", Some(&add.transport));
        self.option("--mtu", add.mtu.map(|mtu| mtu.to_string()));
        self.option("--poll", unless(&add.poll).map(poll));
        self.option("--queues", add.queues.map(|queues| queues.to_string()));
        self.option("--mac", add.mac.as_ref());
        self.each("--address", &add.addresses);
    }

    fn fabric_set(&mut self, set: &FabricSet) {
        self.words(&["fabric", "set", &set.name]);
        self.option("--mtu", set.mtu.map(|mtu| mtu.to_string()));
        self.option("--poll", set.poll.map(poll));
        self.option("--nodes", set.nodes.map(|nodes| nodes.to_string()));
        self.addresses(set.addresses.as_ref());
    }
}

/// A word as a shell takes it for one.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=@%+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// What is not as it is unless told otherwise.
fn unless<T: Default + PartialEq + Copy>(value: &T) -> Option<T> {
    (*value != T::default()).then_some(*value)
}

fn switch(on: bool) -> &'static str {
    if on { "on" } else { "off" }
}

fn ms(ms: u32) -> String {
    format!("{ms}ms")
}

fn policy(policy: Policy) -> &'static str {
    match policy {
        Policy::Spread => "spread",
        Policy::Flow => "flow",
        Policy::ActiveBackup => "active-backup",
        Policy::Mirror => "mirror",
    }
}

fn stripe(stripe: Stripe) -> String {
    match stripe {
        Stripe::Auto => "auto".to_owned(),
        Stripe::Us(us) => format!("{us}us"),
        Stripe::Bytes(bytes) => format!("{bytes}B"),
    }
}

fn weight(weight: Weight) -> String {
    match weight {
        Weight::Auto => "auto".to_owned(),
        Weight::Mbit(mbit) => mbit.to_string(),
    }
}

fn fallback(fallback: Fallback) -> &'static str {
    match fallback {
        Fallback::Share => "share",
        Fallback::Block => "block",
    }
}

fn borrow(borrow: Borrow) -> &'static str {
    match borrow {
        Borrow::Never => "never",
        Borrow::Idle => "idle",
    }
}

fn poll(poll: Poll) -> &'static str {
    match poll {
        Poll::Adaptive => "adaptive",
        Poll::Busy => "busy",
        Poll::Sleep => "sleep",
    }
}
