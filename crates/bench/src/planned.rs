//! What is to be measured, and what it is compared with.

use crate::bed::Bed;
use crate::report::Report;
use crate::sample::{Parameters, Rival};
use crate::share::Share;
use linkbraid_api::Error;
use linkbraid_lab::LinkSpec;
use linkbraid_lab::iperf::{Direction, Load, Traffic};

/// Does something to the links of a lab (`true`), or undoes it.
pub type Around<'a> = dyn Fn(&Bed, bool) -> Result<(), Error> + 'a;

pub struct Planned<'a> {
    pub id: String,
    pub bed: &'a Bed,
    /// What, from host `a` to host `b`.
    pub traffic: Traffic,
    /// Whether duplicate ACKs are damped; of no meaning on a bare link.
    pub damping: bool,
    /// What else is done to the links, in words.
    pub condition: String,
    /// A flow that competes.
    pub rival: Option<Rival>,
    /// The share of the CPU that the client may use, and how much that is at most, in thousandths of a core.
    pub share: Option<(&'a Share, Option<u32>)>,
    /// What to do to the links before each measurement, and to undo after it.
    pub around: Option<&'a Around<'a>>,
    pub ratios: Vec<Against>,
}

#[derive(Debug, Clone)]
pub struct Against {
    pub name: &'static str,
    pub metric: &'static str,
    /// The cases whose sum is the base.
    pub bases: Vec<String>,
    /// What a perfect bond would reach.
    pub ideal: f64,
}

impl Against {
    /// Goodput against the sum of other cases' goodput.
    pub fn mbit(name: &'static str, bases: impl IntoIterator<Item = String>, ideal: f64) -> Self {
        Self { name, metric: "mbit", bases: bases.into_iter().collect(), ideal }
    }

    /// CPU per byte against that of another case.
    pub fn cpu(base: String) -> Self {
        Self { name: "cpu", metric: "cpu_s_per_gb", bases: vec![base], ideal: 1.0 }
    }
}

impl<'a> Planned<'a> {
    pub fn new(id: impl Into<String>, bed: &'a Bed, traffic: Traffic) -> Self {
        Self {
            id: id.into(),
            bed,
            traffic,
            damping: true,
            condition: String::new(),
            rival: None,
            share: None,
            around: None,
            ratios: Vec::new(),
        }
    }

    /// The same, compared with something.
    #[must_use]
    pub fn against(mut self, against: Against) -> Self {
        self.ratios.push(against);
        self
    }

    pub fn parameters(&self) -> Parameters {
        let specs = &self.bed.lab().topology().hosts;
        let (sender, receiver) = match self.traffic.direction {
            Direction::Reverse => (specs.get(1), specs.first()),
            Direction::Forward | Direction::Both => (specs.first(), specs.get(1)),
        };
        let rates = |links: &[LinkSpec]| links.iter().filter_map(|link| link.rate_mbit).collect();
        let links = sender.map_or(&[][..], |host| &host.links);
        let bonded = ["a", "b"].iter().any(|name| self.bed.is_bonded(name));
        let members = sender.is_some_and(|host| self.bed.is_bonded(&host.name));
        Parameters {
            members: if members { u32::try_from(links.len()).unwrap_or(0) } else { 0 },
            rate_mbit: rates(links),
            far_rate_mbit: receiver.map(|host| rates(&host.links)).unwrap_or_default(),
            load: load_name(self.traffic.load),
            flows: self.traffic.flows,
            direction: match self.traffic.direction {
                Direction::Forward => "forward",
                Direction::Reverse => "reverse",
                Direction::Both => "both",
            }
            .into(),
            damping: bonded.then_some(self.damping),
            condition: self.condition.clone(),
        }
    }
}

pub fn load_name(load: Load) -> String {
    match load {
        Load::Tcp(cc) => format!("tcp {}", cc.name()),
        Load::Udp { .. } => "udp".into(),
    }
}

/// Adds a case over the sum of its bases, in each repeat that all of them have.
pub fn compare(report: &mut Report, id: &str, against: &Against) {
    let bases: Vec<(&str, &str)> = against.bases.iter().map(|id| (id.as_str(), against.metric)).collect();
    if let Some(comparison) = report.compare((id, against.metric), against.name, &bases) {
        (comparison.bases, comparison.ideal) = (against.bases.clone(), Some(against.ideal));
    }
}

#[cfg(test)]
mod tests;
