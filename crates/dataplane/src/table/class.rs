//! Classes: the rules that choose them, their plans, and what they carried.

use super::{Count, within};
use crate::{
    Tables,
    error::Result,
    intf::{
        CLASSES_MAX, LB_CONFIG_SECOND_RULES, LB_RULE_CGROUP, LB_RULE_DSCP, LB_RULE_ETHERTYPE, LB_RULE_HOST,
        LB_RULE_MARK, LB_RULE_PORT, LB_RULE_PRIORITY, MEMBERS_MAX, PLAIN_PLAN_FIRST, PLANS_MAX, RULES_MAX,
        lb_class, lb_class_plans, lb_config, lb_count, lb_precedence, lb_rule,
    },
};
use bytemuck::Zeroable as _;
use linkbraid_api::Rule;
use std::net::IpAddr;

/// IP protocol numbers (IANA).
const TCP: u8 = 6;
const UDP: u8 = 17;
/// The greatest DSCP.
const DSCP_MAX: u64 = 63;
/// The greatest depth of a control group that a rule can name (the kernel's own limit is the integers').
const CGROUP_LEVEL_MAX: u64 = i32::MAX as u64;

/// A control group (version 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cgroup {
    /// The inode number of its directory.
    pub id: u64,
    /// How many levels it is below the root of the hierarchy.
    pub level: u32,
}

/// A rule of a class as the programs follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RuleRow(lb_rule);

impl RuleRow {
    /// A rule that chooses a class, 0 being the default class. `cgroup` looks up a control group by its path; while the one
    /// that the rule names is not there, the rule has no row.
    ///
    /// # Errors
    /// A value is out of range.
    pub fn new(class: u8, rule: &Rule, cgroup: impl FnOnce(&str) -> Option<Cgroup>) -> Result<Option<Self>> {
        within("class", class.into(), CLASSES_MAX as u64 - 1)?;
        let mut raw = lb_rule { class, ..lb_rule::zeroed() };
        if let Some(priority) = rule.priority {
            raw.conditions |= LB_RULE_PRIORITY;
            raw.priority = priority;
        }
        if let Some((mark, mask)) = rule.fwmark {
            raw.conditions |= LB_RULE_MARK;
            (raw.mark, raw.mark_mask) = (mark, mask);
        }
        if let Some(dscp) = rule.dscp {
            within("DSCP", dscp.into(), DSCP_MAX)?;
            raw.conditions |= LB_RULE_DSCP;
            raw.dscp = dscp;
        }
        for (protocol, ports) in [(TCP, &rule.tcp_port), (UDP, &rule.udp_port)] {
            let Some(ports) = ports else { continue };
            raw.conditions |= LB_RULE_PORT;
            raw.port_protocol = protocol;
            (raw.port_first, raw.port_last) = (*ports.start(), *ports.end());
        }
        if let Some((host, length)) = rule.host {
            raw.conditions |= LB_RULE_HOST;
            let (bits, words) = match host {
                IpAddr::V4(host) => (32, (u128::from(host.to_bits())) << 96),
                IpAddr::V6(host) => (128, host.to_bits()),
            };
            within("prefix length", length.into(), bits)?;
            let mask = u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0);
            raw.is_ipv6 = host.is_ipv6().into();
            let in_words = |bits: u128| bytemuck::cast(bits.to_be_bytes());
            (raw.host, raw.host_mask) = (in_words(words & mask), in_words(mask));
        }
        if let Some(ethertype) = rule.ethertype {
            raw.conditions |= LB_RULE_ETHERTYPE;
            raw.ethertype = ethertype.to_be();
        }
        if let Some(path) = &rule.cgroup {
            let Some(Cgroup { id, level }) = cgroup(path) else { return Ok(None) };
            within("control group level", level.into(), CGROUP_LEVEL_MAX)?;
            raw.conditions |= LB_RULE_CGROUP;
            (raw.cgroup, raw.cgroup_level) = (id, level);
        }
        Ok(Some(Self(raw)))
    }
}

impl Tables {
    /// Replaces all rules at once; the first one that a frame fulfils counts. A rule that was there before keeps its
    /// count (less what it chooses during this call).
    ///
    /// # Errors
    /// The kernel refuses, or there are more than [`RULES_MAX`] rules; then the old rules are still in force.
    pub fn set_rules(&self, rules: &[RuleRow]) -> Result<()> {
        within("rules", rules.len() as u64, RULES_MAX as u64)?;
        self.change_bond(|config| self.write_rules(config, rules))
    }

    fn write_rules(&self, config: &mut lb_config, rows: &[RuleRow]) -> Result<()> {
        let first = first_row(config);
        let mut old = Vec::new();
        for row in first..first + u32::from(config.n_rules) {
            old.push((RuleRow(self.read("lb_rules", &row)?), row));
        }
        if old.iter().map(|row| &row.0).eq(rows) {
            return Ok(());
        }
        let counters = self.map("lb_rule_counters")?;
        config.flags ^= LB_CONFIG_SECOND_RULES;
        for (row, rule) in (first_row(config)..).zip(rows) {
            let before = old.iter().position(|old| old.0 == *rule).map(|at| old.remove(at).1);
            match before {
                Some(before) => counters.write_percpu(row, &counters.read_percpu::<lb_count>(before)?)?,
                None => counters.clear_percpu::<lb_count>(row)?,
            }
            self.write("lb_rules", &row, &rule.0)?;
        }
        // Both fields are read by one frame at different times; it may see too many rules of a set, which are old ones, or
        // too few, but never one that is half written.
        config.n_rules = rows.len() as u8;
        Ok(())
    }

    /// What each rule chose, in their order.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn rule_counts(&self) -> Result<Vec<Count>> {
        let config: lb_config = self.read("lb_bond", &0u32)?;
        let first = first_row(&config);
        (first..first + u32::from(config.n_rules)).map(|row| self.sum("lb_rule_counters", row)).collect()
    }

    /// What of this class has left the bond since it was loaded: a mirrored frame once, with its trailer. Class 0 is not counted.
    ///
    /// # Errors
    /// The kernel refuses, or there is no such class.
    pub fn class_counts(&self, class: u8) -> Result<Count> {
        within("class", class.into(), CLASSES_MAX as u64 - 1)?;
        self.sum("lb_class_counters", class.into())
    }

    /// Of these, what had no [precedence](Self::set_precedence) because the class sent too much.
    ///
    /// # Errors
    /// The kernel refuses, or there is no such class.
    pub fn class_over(&self, class: u8) -> Result<Count> {
        within("class", class.into(), CLASSES_MAX as u64 - 1)?;
        self.sum("lb_class_over", class.into())
    }

    /// Forgets what was of a class, for the next one of its number.
    ///
    /// # Errors
    /// The kernel refuses, or there is no such class.
    pub fn clear_class_counts(&self, class: u8) -> Result<()> {
        within("class", class.into(), CLASSES_MAX as u64 - 1)?;
        for counters in ["lb_class_counters", "lb_class_over"] {
            self.map(counters)?.clear_percpu::<lb_count>(class.into())?;
        }
        Ok(())
    }

    /// Gives frames of these classes, a bit each, priority 6 on their way out, and of others none. All together have it for nine
    /// tenths of what each member carries, in kbit/s by slot; 0: without a bound.
    ///
    /// # Errors
    /// The kernel refuses, or there is no such class.
    pub fn set_precedence(&self, classes: u32, kbit: [u32; MEMBERS_MAX]) -> Result<()> {
        within("classes", classes.into(), (1 << CLASSES_MAX) - 1)?;
        self.write("lb_precedence", &0u32, &lb_precedence { classes, kbit })
    }

    /// Writes a class: its own members, a bit a slot, and whether others borrow them. If they do, what the class sends
    /// by them keeps the others off [lanes](crate::Lane::class) of this class for 100 ms.
    ///
    /// # Errors
    /// The kernel refuses, or the number or a slot is out of range.
    pub fn set_class(&self, number: u8, slots: u32, borrow: bool) -> Result<()> {
        within("class", number.into(), CLASSES_MAX as u64 - 1)?;
        within("slots", slots.into(), (1 << MEMBERS_MAX) - 1)?;
        let old: lb_class = self.read("lb_classes", &u32::from(number))?;
        self.write("lb_classes", &u32::from(number), &lb_class { slots, lends: borrow.into(), ..old })
    }

    /// From now on a class takes the plan `number` in place of the plan `base`; `None`: `base` itself. `base` is 0 or the
    /// [plan of a segment](crate::plain_plan) for plain hosts, else the plan of a peer. A plan without lanes that does
    /// not [share](crate::Plan::shares) drops the class's frames (`tx_class_blocked`).
    ///
    /// # Errors
    /// The kernel refuses, or a number is out of range.
    pub fn set_class_plan(&self, base: u32, class: u8, number: Option<u32>) -> Result<()> {
        within("plan", base.into(), u64::from(PLANS_MAX) - 1)?;
        within("plan", number.unwrap_or(0).into(), u64::from(PLAIN_PLAN_FIRST) - 1)?;
        within("class", class.into(), CLASSES_MAX as u64 - 1)?;
        let mut plans: lb_class_plans = self.read("lb_class_plans", &base)?;
        let number = number.unwrap_or(0) as u16;
        let old = std::mem::replace(&mut plans.number[usize::from(class)], number);
        if old == number { Ok(()) } else { self.write("lb_class_plans", &base, &plans) }
    }

    /// All plans of classes, each with what it stands in place of, the class, and its number; for a daemon that adopts
    /// the table of an earlier one.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn class_plans(&self) -> Result<Vec<(u32, u8, u32)>> {
        let mut all = Vec::new();
        for base in 0..PLANS_MAX {
            let plans: lb_class_plans = self.read("lb_class_plans", &base)?;
            let numbers = (0u8..).zip(plans.number).filter(|(_, number)| *number != 0);
            all.extend(numbers.map(|(class, number)| (base, class, u32::from(number))));
        }
        Ok(all)
    }
}

/// The row of the first rule in force.
fn first_row(config: &lb_config) -> u32 {
    if config.flags & LB_CONFIG_SECOND_RULES == 0 { 0 } else { RULES_MAX as u32 }
}

#[cfg(test)]
mod tests;
