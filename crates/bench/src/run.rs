//! Running one experiment: its labs, its cases in turns, and the report that grows meanwhile.

use crate::activity::Activity;
use crate::bed::{Bed, Class};
use crate::machine::{self, Machine};
use crate::planned::{Planned, compare};
use crate::progress::{Progress, Step};
use crate::report::{Bound, CASES, Goal, Reason, Record, Report, SCHEMA, Settings, both};
use crate::sample::{self, Parameters, Sample};
use crate::share::THROTTLED;
use crate::table;
use linkbraid_api::Error;
use linkbraid_lab::iperf::{Cc, Traffic};
use linkbraid_lab::{Interrupt, Topology, stolen, wait_until};
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

/// How long the machine is watched before an experiment, to know what else it does.
const BACKGROUND: Duration = Duration::from_secs(1);

/// How often a pause looks whether the run was stopped.
const PAUSE: Duration = Duration::from_millis(50);

/// From this share of busy CPU on, a result says how fast the machine is.
const CPU_LIMITED: f64 = 0.9;

/// From this share of CPU time that others had on, a result says what they do.
const STOLEN: f64 = 0.1;

/// What a bare link must carry of what its rate allows, to say anything.
pub const BASE_SHARE: f64 = 0.95;

/// The ways of congestion control that TCP is measured with, by their names; a quick run that wants one has the first.
pub static CCS: [(&str, Cc); 2] = [("cubic", Cc::Cubic), ("bbr", Cc::Bbr)];

pub struct Run<'a> {
    pub settings: Settings,
    pub report: Report,
    /// Only cases whose names begin with this are measured.
    pub only: String,
    progress: &'a mut dyn Progress,
    stop: &'a Interrupt,
    taken: u32,
    planned: u32,
}

impl<'a> Run<'a> {
    pub fn new(
        (name, about, paper): (&str, &str, &str),
        settings: Settings,
        progress: &'a mut dyn Progress,
        stop: &'a Interrupt,
    ) -> Result<Self, Error> {
        let report = Report {
            schema: SCHEMA,
            experiment: name.into(),
            about: about.into(),
            paper: paper.into(),
            started: jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string(),
            settings,
            machine: Machine::here(),
            sysctls: BTreeMap::new(),
            background_cpu_share: background()?,
            labs: Vec::new(),
            measures: Vec::new(),
            curves: Vec::new(),
            remarks: Vec::new(),
            skipped: Vec::new(),
            failed: Vec::new(),
            goals: Vec::new(),
        };
        Ok(Self { settings, report, only: String::new(), progress, stop, taken: 0, planned: 0 })
    }

    /// Says how many measurements are still to come, each counted once a repeat.
    pub fn plan(&mut self, cases: usize) {
        self.plan_steps(u32::try_from(cases).unwrap_or(u32::MAX).saturating_mul(self.settings.repeat));
    }

    /// Says how many steps are still to come.
    pub fn plan_steps(&mut self, steps: u32) {
        self.planned = self.planned.saturating_add(steps);
    }

    /// Says that so many of the planned steps will not be.
    pub fn drop_steps(&mut self, steps: u32) {
        self.planned = self.planned.saturating_sub(steps);
    }

    /// Says what is measured now. Of a part of an experiment nobody knows how many steps it has.
    pub fn step(&mut self, case: &str) {
        self.taken += 1;
        let of = (self.only.is_empty() && self.taken <= self.planned).then_some(self.planned);
        let experiment = &self.report.experiment;
        self.progress.begin(Step { experiment, case, number: self.taken, of });
    }

    /// Whether a case of this name, or one whose name begins like this, is to be measured.
    pub fn wants(&self, name: &str) -> bool {
        name.starts_with(&self.only) || self.only.starts_with(name)
    }

    pub fn say(&mut self, line: &str) -> Result<(), Error> {
        self.progress.line(line);
        self.stop.check()
    }

    pub fn check(&self) -> Result<(), Error> {
        self.stop.check()
    }

    /// Lets a time pass in which something is measured; fails once Ctrl-C was pressed.
    pub fn pause(&self, time: Duration) -> Result<(), Error> {
        let due = Instant::now() + time;
        while let Some(left) = due.checked_duration_since(Instant::now()) {
            self.check()?;
            // A long measured time would make Ctrl-C wait.
            std::thread::sleep(left.min(PAUSE));
        }
        Ok(())
    }

    pub fn bare(&mut self, name: &str, topology: Topology) -> Result<Bed, Error> {
        self.keep(Bed::bare(name, topology))
    }

    /// A lab with bonds over all links of its hosts, plain ones aside.
    pub fn bonded(&mut self, name: &str, topology: Topology) -> Result<Bed, Error> {
        self.keep(Bed::bonded(name, topology))
    }

    /// The same with a class on every bond; the words are those after `class add BOND`.
    pub fn classed(&mut self, name: &str, topology: Topology, class: Class) -> Result<Bed, Error> {
        self.keep(Bed::bonded(name, topology).and_then(|mut bed| bed.add_class(class).map(|()| bed)))
    }

    pub fn keep(&mut self, bed: Result<Bed, Error>) -> Result<Bed, Error> {
        let bed = bed?;
        self.check()?;
        self.report.labs.push(bed.record());
        if self.report.sysctls.is_empty() {
            self.report.sysctls = machine::sysctls(bed.host("a")?);
        }
        Ok(bed)
    }

    pub fn skip(&mut self, id: impl Into<String>, reason: impl Into<String>) {
        let id = id.into();
        if self.wants(&id) {
            self.report.skipped.push(Reason { id, reason: reason.into() });
        }
    }

    /// Notes a case that is left out for what is not here, and what helps.
    pub fn skip_for(&mut self, id: impl Into<String>, error: &Error) {
        let help = error.hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default();
        self.skip(id, format!("{error}{help}"));
    }

    /// Notes what was found and is said in words.
    pub fn remark(&mut self, id: impl Into<String>, reason: impl Into<String>) {
        self.report.remarks.push(Reason { id: id.into(), reason: reason.into() });
    }

    /// Notes a case that could not be run, unless the run was stopped: that ends it.
    pub fn fail(&mut self, id: impl Into<String>, error: Error) -> Result<(), Error> {
        if self.stop.is_caught() {
            return Err(error);
        }
        let id = id.into();
        let line = format!("  {id}: failed: {error}");
        self.report.failed.push(Reason { id, reason: error.to_string() });
        self.progress.warn(&line);
        self.stop.check()
    }

    /// What a part came to; if it failed, that is noted as by [`fail`](Run::fail).
    pub fn noted<T>(&mut self, id: impl Into<String>, part: Result<T, Error>) -> Result<Option<T>, Error> {
        match part {
            Ok(done) => Ok(Some(done)),
            Err(error) => self.fail(id, error).map(|()| None),
        }
    }

    /// Notes that the whole experiment could not go on.
    pub fn broken(&mut self, error: &Error) {
        let hint = error.hint.as_ref().map_or_else(String::new, |hint| format!(" ({hint})"));
        let reason = format!("{error}{hint}");
        self.progress.warn(&format!("  failed: {reason}"));
        self.report.failed.push(Reason { id: self.report.experiment.clone(), reason });
    }

    /// Adds a goal, if its case is one that is wanted; one that was left out with a reason has none.
    pub fn goal(&mut self, goal: Goal) {
        let left_out = self.report.skipped.iter().any(|reason| goal.case.starts_with(&reason.id));
        if goal.case.starts_with(&self.only) && !left_out {
            self.report.goals.push(goal);
        }
    }

    /// Adds goals likewise.
    pub fn goals(&mut self, goals: impl IntoIterator<Item = Goal>) {
        goals.into_iter().for_each(|goal| self.goal(goal));
    }

    /// Judges a value of a case, and adds that as a goal.
    pub fn judge(&mut self, case: &str, what: &str, bound: Bound, limit: f64, value: Option<f64>) {
        self.goal(Goal::new(case, what, bound, limit, value));
    }

    /// Notes the numbers of a turn, and says them.
    pub fn note(
        &mut self,
        id: &str,
        typed: &str,
        turn: u32,
        values: &[(&str, &str, f64)],
    ) -> Result<(), Error> {
        self.report.note(id, typed, turn, values);
        let text =
            |(metric, unit, value): &(&str, &str, f64)| format!("{metric} {} {unit}", table::number(*value));
        let texts: Vec<String> = values.iter().map(text).collect();
        self.say(&format!("  {id:<32} #{} {}", turn + 1, texts.join("  ")))
    }

    /// Takes samples of a case into the report.
    pub fn samples(&mut self, id: &str, bed: &Bed, parameters: &Parameters, samples: &[Sample]) {
        let turns = samples.iter().map(|sample| sample.numbers(parameters)).collect();
        let parameters = both(json!(parameters), json!({ "lab": bed.name() }));
        self.report.record(CASES, id, Record { turns, parameters, ..Record::default() });
    }

    /// The ways of congestion control; a quick run has one.
    pub fn ccs(&self) -> &'static [(&'static str, Cc)] {
        if self.settings.quick { &CCS[..1] } else { &CCS }
    }

    pub fn tcp(&self, cc: Cc) -> Traffic {
        Traffic { omit: self.settings.omit, ..Traffic::tcp(cc, self.settings.seconds) }
    }

    /// The traffic of a UDP case: datagrams of full size, 1.1 times as much as links of `mbit` in all can carry.
    pub fn udp(&self, mbit: u32) -> Traffic {
        let offered = u32::try_from(u64::from(mbit) * 11 / 10).unwrap_or(u32::MAX).max(1);
        Traffic { omit: self.settings.omit, ..Traffic::udp(offered, self.settings.seconds) }
    }

    pub fn sample(&mut self, bed: &Bed, traffic: &Traffic) -> Result<Sample, Error> {
        sample::take(bed, traffic, (None, None), self.stop)
    }

    /// Measures cases in turns, all of them once before any of them again, so that whatever else the machine does
    /// meets them alike. A case that fails is noted, and not tried again.
    pub fn interleave(&mut self, cases: &[Planned<'_>]) -> Result<(), Error> {
        let mut samples: Vec<Vec<Sample>> = vec![Vec::new(); cases.len()];
        let named = |case: &&Planned<'_>| case.id.starts_with(&self.only);
        let bases = || cases.iter().filter(named).flat_map(|case| &case.ratios).flat_map(|r| &r.bases);
        let mut given_up: Vec<bool> =
            cases.iter().map(|case| !named(&case) && !bases().any(|base| *base == case.id)).collect();
        for repeat in 0..self.settings.repeat {
            for (index, case) in cases.iter().enumerate() {
                if given_up[index] {
                    continue;
                }
                self.step(&case.id);
                match self.measure(case) {
                    Ok(sample) => {
                        self.say_sample(case, repeat, &sample)?;
                        if let Some(share) = sample.throttled_share {
                            let typed = "nr_throttled and nr_periods of cpu.stat";
                            self.report.note(
                                &case.id,
                                typed,
                                repeat,
                                &[(THROTTLED, "of all periods", share)],
                            );
                        }
                        samples[index].push(Sample { repeat, ..sample });
                    }
                    Err(error) => {
                        self.fail(&case.id, error)?;
                        given_up[index] = true;
                        self.drop_steps(self.settings.repeat - repeat - 1);
                    }
                }
            }
        }
        let measured = || cases.iter().zip(&samples).filter(|(_, samples)| !samples.is_empty());
        for (case, samples) in measured() {
            self.samples(&case.id, case.bed, &case.parameters(), samples);
        }
        for (case, _) in measured() {
            case.ratios.iter().for_each(|against| compare(&mut self.report, &case.id, against));
        }
        Ok(())
    }

    fn measure(&self, case: &Planned<'_>) -> Result<Sample, Error> {
        self.check()?;
        case.bed.set_damping(case.damping)?;
        let beside = (case.rival.as_ref(), case.share);
        let Some(around) = case.around else {
            return sample::take(case.bed, &case.traffic, beside, self.stop);
        };
        around(case.bed, true)?;
        let sample = sample::take(case.bed, &case.traffic, beside, self.stop);
        around(case.bed, false)?;
        sample
    }

    fn say_sample(&mut self, case: &Planned<'_>, repeat: u32, sample: &Sample) -> Result<(), Error> {
        let width = self.planned.to_string().len();
        let again = sample.again_per_10k().map_or_else(
            || format!("{:5.1} % lost", sample.lost_share().unwrap_or(0.0) * 100.0),
            |again| format!("{again:5.1} again/10k"),
        );
        let all = if self.only.is_empty() { format!("/{}", self.planned) } else { String::new() };
        let mut line = format!(
            "  [{:width$}{all}] {:<40} #{} {:>9.1} Mbit/s  median second {:>9.1}  {again}  CPU {:3.0} %",
            self.taken,
            case.id,
            repeat + 1,
            sample.mbit,
            sample.median_second_mbit,
            sample.cpu_share * 100.0,
        );
        if sample.stolen_share >= stolen::MUCH {
            line += &format!(", {:.0} % had by others", sample.stolen_share * 100.0);
        }
        self.say(&line)
    }
}

/// The busy share of the machine before anything is started.
fn background() -> Result<f64, Error> {
    let (before, due) = (Activity::now()?, Instant::now() + BACKGROUND);
    // Reaching the time is the point.
    let _ = wait_until(BACKGROUND * 2, "a look at the idle machine", || Instant::now() >= due, |due| *due);
    Ok(Activity::now()?.since(&before).share)
}

/// Why a missed goal of this case means nothing: the machine had no CPU left, whatever took it.
pub fn cpu_limited(report: &Report, id: &str) -> Option<String> {
    if let Some(stolen) = report.median(id, "stolen_share").filter(|share| *share > STOLEN) {
        return Some(format!("others on this physical machine had {:.0} % of its CPU time", stolen * 100.0));
    }
    let share = report.median(id, "cpu_share")?;
    (share > CPU_LIMITED).then(|| format!("the machine was at its limit: CPU {:.0} % busy", share * 100.0))
}

/// Why a case that is beside this bare link says little: the link itself does not carry what its rate allows.
pub fn weak_base(report: &Report, base: &str) -> Option<String> {
    let share = report.median(base, "of_limit")?;
    (share < BASE_SHARE).then(|| format!("the bare link itself carries only {share:.2} of its rate"))
}

/// A number of the environment, if it has one.
pub fn number(key: &str, usual: u64, allowed: RangeInclusive<u64>) -> Result<u64, Error> {
    let text = std::env::var_os(key);
    text.map_or(Ok(usual), |text| parse(key, &text.to_string_lossy(), usual, allowed))
}

fn parse(key: &str, text: &str, usual: u64, allowed: RangeInclusive<u64>) -> Result<u64, Error> {
    text.parse().ok().filter(|number| allowed.contains(number)).ok_or_else(|| {
        let range = format!("'{text}' is outside the allowed range {} to {}", allowed.start(), allowed.end());
        Error::new("bench", format!("cannot use {key}"), range).hint(format!("{key}={usual}"))
    })
}

#[cfg(test)]
mod tests;
