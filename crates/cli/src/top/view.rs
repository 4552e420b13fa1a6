//! What is known as a picture: a state and a moment become lines, and lines become cells of the screen.

use super::source::Sample;
use super::state::{PAGES, Page, State};
use crate::text::{self, Clock, Style as Plain, Tone};
use linkbraid_api::{
    BondRecord, EventKind, EventRecord, FabricRecord, Health, LaneRecord, NodeState, ShareFrom,
};
use linkbraid_terminal::{Table, human, report::one_line};
use ratatui::buffer::Buffer;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Widget};

/// The least that something can be read on.
const WIDTH_MIN: u16 = 40;
const HEIGHT_MIN: u16 = 8;
/// Lines of events below the members, if there is room, and the least that has to be left above them.
const LAST_EVENTS: u16 = 7;
const ABOVE_EVENTS: u16 = 6;
/// Characters of a full bar.
const BAR: usize = 8;
/// Characters of a rate, so that columns stay where they are.
const RATE: usize = 11;
/// What the keys do.
const KEYS: &str = " q quit   tab or arrows: page   / filter   p pause   up, down: scroll";

/// The whole screen.
pub struct Screen<'s> {
    /// What it shows.
    pub state: &'s State,
    /// This moment.
    pub clock: &'s Clock,
    /// Whether colours are wanted.
    pub colour: bool,
}

/// What a line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// The names of columns.
    Head,
    /// What the rows below it belong to.
    Title,
    Row,
    /// More about the row above it.
    Note,
}

#[derive(Debug, Clone)]
struct Text {
    kind: Kind,
    text: String,
}

impl Widget for Screen<'_> {
    fn render(self, area: Rect, buf: &mut Buffer) {
        if area.width < WIDTH_MIN || area.height < HEIGHT_MIN {
            let text = format!("top needs {WIDTH_MIN} x {HEIGHT_MIN} characters");
            return Paragraph::new(text).render(area, buf);
        }
        let rows = [Constraint::Length(1), Constraint::Length(1), Constraint::Min(0), Constraint::Length(1)];
        let [first, tabs, body, keys] = Layout::vertical(rows).areas(area);
        self.first_line(first, buf);
        self.tabs().render(tabs, buf);
        let events = match self.state.page {
            Page::Members if body.height >= ABOVE_EVENTS + LAST_EVENTS => LAST_EVENTS,
            _ => 0,
        };
        let [page, last] = Layout::vertical([Constraint::Min(0), Constraint::Length(events)]).areas(body);
        self.page(page, buf);
        if events > 0 {
            self.last_events(last, buf);
        }
        self.keys().render(keys, buf);
    }
}

impl Screen<'_> {
    /// Name, trouble and time.
    fn first_line(&self, area: Rect, buf: &mut Buffer) {
        let now = self.clock.now();
        let time = u16::try_from(now.len()).unwrap_or_default() + 1;
        let [left, right] = Layout::horizontal([Constraint::Min(0), Constraint::Length(time)]).areas(area);
        let mut spans = vec![Span::styled(" linkbraid top", Modifier::BOLD)];
        if self.state.is_paused() {
            spans.push(Span::raw("  "));
            spans.push(Span::styled(" paused ", self.tone(Tone::Uneasy).add_modifier(Modifier::REVERSED)));
        }
        if let Some(trouble) = &self.state.shown().trouble {
            spans.push(Span::styled(format!("  {}", one_line(trouble)), self.tone(Tone::Bad)));
        }
        Line::from(spans).render(left, buf);
        Line::raw(now).right_aligned().render(right, buf);
    }

    fn tabs(&self) -> Line<'static> {
        let mut spans = vec![Span::raw(" ")];
        for (number, (page, name)) in (1..).zip(PAGES) {
            let style = match page == self.state.page {
                true => Modifier::REVERSED.into(),
                false => Style::default(),
            };
            spans.push(Span::styled(format!(" {number} {name} "), style));
        }
        Line::from(spans)
    }

    fn page(&self, area: Rect, buf: &mut Buffer) {
        let lines = body(self.state, self.clock, area.width.into());
        // The names of columns stay when the rest moves.
        let heads = usize::from(lines.first().is_some_and(|line| line.kind == Kind::Head));
        let most = lines.len().saturating_sub(area.height.into());
        let scroll = self.state.scroll.min(most);
        let shown = lines.iter().take(heads).chain(lines.iter().skip(heads + scroll));
        self.lines(shown, area, buf);
    }

    fn last_events(&self, area: Rect, buf: &mut Buffer) {
        let title = Text { kind: Kind::Head, text: " last events".to_owned() };
        // Those of lanes are many, and fill a page of their own.
        let events = self.state.shown().events.iter().filter(|event| event.kind != EventKind::Lane);
        let lines = matching(self::events(events, self.clock, area.width.into()), &self.state.filter);
        self.lines(std::iter::once(&title).chain(&lines), area, buf);
    }

    fn lines<'t>(&self, lines: impl Iterator<Item = &'t Text>, area: Rect, buf: &mut Buffer) {
        for (row, line) in area.rows().zip(lines) {
            self.line(line).render(row, buf);
        }
    }

    /// A line in which states have their colours.
    fn line<'t>(&self, line: &'t Text) -> Line<'t> {
        let style = match line.kind {
            Kind::Head => Modifier::DIM.into(),
            Kind::Title => Modifier::BOLD.into(),
            Kind::Row | Kind::Note => Style::default(),
        };
        let words = line.text.split_inclusive(' ').map(|word| match text::tone(word.trim_end()) {
            Some(tone) if line.kind != Kind::Head => Span::styled(word, self.tone(tone)),
            _ => Span::raw(word),
        });
        Line::from(words.collect::<Vec<_>>()).style(style)
    }

    fn keys(&self) -> Line<'_> {
        let State { filter, typing, .. } = self.state;
        match (*typing, filter.is_empty()) {
            (true, _) => Line::raw(format!(" /{filter}_   enter keeps the filter, esc removes it")),
            (false, true) => Line::styled(KEYS, Modifier::DIM),
            (false, false) => {
                Line::raw(format!(" filter '{filter}'   / changes it, esc removes it   q quit"))
            }
        }
    }

    fn tone(&self, tone: Tone) -> Style {
        let colour = match tone {
            Tone::Good => Color::Green,
            Tone::Uneasy => Color::Yellow,
            Tone::Bad => Color::Red,
        };
        if self.colour { Style::from(colour) } else { Style::default() }
    }
}

/// How many lines the page has.
pub fn lines(state: &State) -> usize {
    body(state, &Clock::local(), WIDTH_MIN.into()).len()
}

/// The lines of the page that contain the filter.
fn body(state: &State, clock: &Clock, width: usize) -> Vec<Text> {
    let known = state.shown();
    let Some(now) = &known.now else { return Vec::new() };
    let rates = Rates { before: known.before.as_ref(), now };
    let lines = match state.page {
        Page::Members => members(&rates),
        Page::Lanes => lanes(&rates),
        Page::Latency => latency(now),
        Page::Events => events(&known.events, clock, width),
    };
    matching(lines, &state.filter)
}

/// Lines that contain the filter, whatever its case, with those that they need: the names of their columns, and their title. A
/// title that contains it stands for all below it.
fn matching(lines: Vec<Text>, filter: &str) -> Vec<Text> {
    let wanted = filter.to_lowercase();
    let has = |line: &Text| line.text.to_lowercase().contains(&wanted);
    let mut kept: Vec<Text> = Vec::new();
    // What is shown only if something below it is.
    let (mut heads, mut title) = (Vec::new(), None);
    let (mut is_titled, mut is_kept, mut is_below) = (false, false, false);
    for line in lines {
        match line.kind {
            Kind::Head => {
                if std::mem::take(&mut is_below) {
                    heads.clear();
                }
                (title, is_titled, is_kept) = (None, false, false);
                heads.push(line);
                continue;
            }
            Kind::Title => {
                (is_titled, is_kept) = (has(&line), false);
                title = Some(line);
                // It may have no rows.
                if is_titled {
                    kept.append(&mut heads);
                    kept.extend(title.take());
                }
            }
            Kind::Row => {
                is_kept = is_titled || has(&line);
                if is_kept {
                    kept.append(&mut heads);
                    kept.extend(title.take());
                    kept.push(line);
                }
            }
            Kind::Note if is_kept => kept.push(line),
            Kind::Note => {}
        }
        is_below = true;
    }
    if kept.is_empty() {
        kept.push(row(&format!(" nothing here contains '{filter}'")));
    }
    kept
}

/// The lines of a table: names of columns, titles at the left, rows, and notes below them.
fn table(table: &Table) -> Vec<Text> {
    let text = table.render();
    let kind = |number: usize, line: &str| match line.len() - line.trim_start().len() {
        _ if number == 0 => Kind::Head,
        0 => Kind::Title,
        1 | 2 => Kind::Row,
        _ => Kind::Note,
    };
    let lines = text.lines().enumerate();
    lines.map(|(number, line)| Text { kind: kind(number, line), text: line.to_owned() }).collect()
}

fn row(text: &str) -> Text {
    Text { kind: Kind::Row, text: text.to_owned() }
}

/// Two samples, by which counters become rates.
struct Rates<'s> {
    before: Option<&'s Sample>,
    now: &'s Sample,
}

impl Rates<'_> {
    /// Bytes a second, where a counter was known before. One that went back began anew since.
    fn of(&self, now: u64, before: impl Fn(&Sample) -> Option<u64>) -> Option<u64> {
        let sample = self.before?;
        let seconds = self.now.at.saturating_duration_since(sample.at).as_secs_f64();
        let before = before(sample)?;
        let grown = now.checked_sub(before).unwrap_or(now);
        (seconds > 0.0).then(|| (grown as f64 / seconds) as u64)
    }

    /// Sent and received, of each member.
    fn members(&self, bond: &BondRecord) -> Vec<[Option<u64>; 2]> {
        let rates = bond.members.iter().map(|member| {
            let find = |sample: &Sample| {
                let bond = sample.bonds.iter().find(|other| other.name == bond.name)?;
                let found = bond.members.iter().find(|other| other.interface == member.interface)?;
                Some([found.tx_bytes, found.rx_bytes])
            };
            [
                self.of(member.tx_bytes, |sample| Some(find(sample)?[0])),
                self.of(member.rx_bytes, |sample| Some(find(sample)?[1])),
            ]
        });
        rates.collect()
    }

    /// Sent and received, of each other node.
    fn nodes(&self, fabric: &FabricRecord) -> Vec<[Option<u64>; 2]> {
        let rates = fabric.peers.iter().map(|node| {
            let find = |sample: &Sample| {
                let fabric = sample.fabrics.iter().find(|other| other.name == fabric.name)?;
                let found = fabric.peers.iter().find(|other| other.node == node.node)?;
                Some([found.tx_bytes, found.rx_bytes])
            };
            [
                self.of(node.tx_bytes, |sample| Some(find(sample)?[0])),
                self.of(node.rx_bytes, |sample| Some(find(sample)?[1])),
            ]
        });
        rates.collect()
    }

    /// Sent over a lane.
    fn lane(&self, lane: &LaneRecord) -> Option<u64> {
        let is_same = |other: &&LaneRecord| {
            (&other.bond, &other.peer, &other.member) == (&lane.bond, &lane.peer, &lane.member)
                && (&other.peer_mac, &other.class) == (&lane.peer_mac, &lane.class)
        };
        self.of(lane.tx_bytes, |sample| Some(sample.lanes.iter().find(is_same)?.tx_bytes))
    }
}

/// All of one direction; none where one of them is not known.
fn sum(rates: &[[Option<u64>; 2]], direction: usize) -> Option<u64> {
    rates.iter().map(|rates| rates[direction]).sum()
}

/// A rate in bits, as links have it.
fn rate(bytes: Option<u64>) -> String {
    match bytes {
        None => "-".to_owned(),
        Some(0) => "0".to_owned(),
        Some(bytes) => {
            let kbit = bytes.saturating_mul(8).div_ceil(1000);
            human::measured_rate(u32::try_from(kbit).unwrap_or(u32::MAX))
        }
    }
}

/// The same as wide as every other one.
fn cell(bytes: Option<u64>) -> String {
    format!("{:>RATE$}", rate(bytes))
}

/// How much of a link is in use, in the direction that has more to carry.
fn load(rates: [Option<u64>; 2], mbit: u32) -> String {
    let Some(bytes) = rates.into_iter().flatten().max().filter(|_| mbit > 0) else { return String::new() };
    let share = share(bytes, mbit);
    let filled = (share * BAR as f64).round() as usize;
    format!("{}{} {:>3.0} %", "█".repeat(filled), "░".repeat(BAR - filled), share * 100.0)
}

/// The part of a rate that is in use, from 0 to 1.
fn share(bytes: u64, mbit: u32) -> f64 {
    (bytes as f64 * 8.0 / 1e6 / f64::from(mbit)).min(1.0)
}

/// Bonds with their members, then fabrics with their nodes.
fn members(rates: &Rates) -> Vec<Text> {
    let mut lines = Vec::new();
    if !rates.now.bonds.is_empty() {
        let mut rows =
            Table::new("  ", &["member", "class", "state", ">out now", ">in now", ">link", "load"]);
        for bond in &rates.now.bonds {
            bond_rows(&mut rows, bond, &rates.members(bond));
        }
        lines.extend(table(&rows));
    }
    if !rates.now.fabrics.is_empty() {
        if !lines.is_empty() {
            lines.push(Text { kind: Kind::Head, text: String::new() });
        }
        let mut rows = Table::new("  ", &["node", "state", ">out now", ">in now", ">waiting", ">dropped"]);
        for fabric in &rates.now.fabrics {
            fabric_rows(&mut rows, fabric, &rates.nodes(fabric));
        }
        lines.extend(table(&rows));
    }
    if lines.is_empty() {
        lines.push(row(" no bonds and no fabrics; add one: linkbraid bond add bond0 --member eth1,eth2"));
    }
    lines
}

/// `bond0  degraded  out 283 Mbit/s, in 3.1 Mbit/s  'eth1' has no carrier`
fn title(name: &str, health: Health, rates: &[[Option<u64>; 2]], more: &str) -> String {
    let health = text::health(health, &Plain::new(false));
    let (out, into) = (rate(sum(rates, 0)), rate(sum(rates, 1)));
    format!("{name}  {health}  out {out}, in {into}  {more}").trim_end().to_owned()
}

fn bond_rows(rows: &mut Table, bond: &BondRecord, rates: &[[Option<u64>; 2]]) {
    let peers = human::count(bond.peers as usize, "peer");
    let more = if bond.reason.is_empty() { peers } else { format!("{peers}  {}", bond.reason) };
    rows.title(&title(&bond.name, bond.health, rates, &more));
    for (member, rates) in bond.members.iter().zip(rates) {
        let why =
            if member.reason.is_empty() { load(*rates, member.weight_mbit) } else { member.reason.clone() };
        rows.row([
            member.interface.clone(),
            member.class.clone().unwrap_or_default(),
            if member.live { "up" } else { "down" }.to_owned(),
            cell(rates[0]),
            cell(rates[1]),
            human::rate(member.weight_mbit),
            why,
        ]);
    }
    for absent in &bond.absent {
        let gone = "interface is gone, joins again as soon as it can";
        let nothing = || "-".to_owned();
        rows.row([
            absent.clone(),
            String::new(),
            "gone".to_owned(),
            nothing(),
            nothing(),
            nothing(),
            gone.to_owned(),
        ]);
    }
}

fn fabric_rows(rows: &mut Table, fabric: &FabricRecord, rates: &[[Option<u64>; 2]]) {
    let node = format!("node {} of {}  {}", fabric.node, fabric.nodes, fabric.reason);
    rows.title(&title(&fabric.name, fabric.health, rates, &node));
    for (node, rates) in fabric.peers.iter().zip(rates) {
        let state = match node.state {
            NodeState::Up => "up",
            NodeState::Down => "down",
            NodeState::Refused => "refused",
            NodeState::Absent => continue,
        };
        rows.row([
            node.node.to_string(),
            state.to_owned(),
            cell(rates[0]),
            cell(rates[1]),
            human::bytes(node.queued_bytes),
            human::frames(node.dropped_frames),
        ]);
    }
}

/// Lanes, each with what it carries now and what it could carry.
fn lanes(rates: &Rates) -> Vec<Text> {
    if rates.now.lanes.is_empty() {
        return vec![row(" no lanes")];
    }
    let columns = ["member", "peer's member", "state", ">share", ">out now", ">could", ">load"];
    let mut rows = Table::new("  ", &columns);
    let mut last = None;
    for lane in &rates.now.lanes {
        let to = (&lane.bond, &lane.peer, &lane.class);
        if last.replace(to) != Some(to) {
            let class = lane.class.as_ref().map_or_else(String::new, |class| format!(", class {class}"));
            rows.title(&format!("{} to {}{class}", lane.bond, lane.peer));
        }
        let is_measured = lane.share_from == Some(ShareFrom::Measured);
        let kbit = lane.measured_kbit.filter(|_| is_measured).or(lane.told_kbit);
        let now = rates.lane(lane);
        rows.row([
            lane.member.clone(),
            lane.peer_mac.clone().unwrap_or_else(|| "any".to_owned()),
            lane.state.clone(),
            if lane.share_ppm == 0 { "-".to_owned() } else { human::percent(lane.share_ppm) },
            cell(now),
            kbit.map_or_else(|| "-".to_owned(), human::measured_rate),
            kbit.zip(now).map_or_else(String::new, |(kbit, now)| {
                format!("{:.0} %", share(now, kbit.div_ceil(1000).max(1)) * 100.0)
            }),
        ]);
        if let Some(class) = &lane.borrowed_from {
            rows.note(&format!("borrowed from {class}, while that is idle"));
        }
    }
    table(&rows)
}

/// Where time goes, by class.
fn latency(now: &Sample) -> Vec<Text> {
    if now.latency.is_empty() {
        if now.bonds.iter().any(|bond| bond.settings.latency) {
            return vec![row(" nothing measured yet")];
        }
        let name = now.bonds.first().map_or("bond0", |bond| bond.name.as_str());
        return vec![row(&format!(
            " nothing measured; switch it on: linkbraid bond set {name} --latency on"
        ))];
    }
    let columns = ["class", "stage", ">frames", ">p50 us", ">p90 us", ">p99 us", ">p99.9 us", ">max us"];
    let mut rows = Table::new("  ", &columns);
    let mut last = None;
    for record in &now.latency {
        if last.replace(&record.bond) != Some(&record.bond) {
            rows.title(&format!("{}: on the way out, since it was switched on", record.bond));
        }
        let time = |ns| if record.count == 0 { "-".to_owned() } else { human::microseconds(ns) };
        rows.row([
            record.class.clone(),
            record.stage.clone(),
            human::frames(record.count),
            time(record.p50_ns),
            time(record.p90_ns),
            time(record.p99_ns),
            time(record.p999_ns),
            time(record.max_ns),
        ]);
    }
    table(&rows)
}

/// Events, the newest first.
fn events<'e>(events: impl IntoIterator<Item = &'e EventRecord>, clock: &Clock, width: usize) -> Vec<Text> {
    let style = Plain::new(false).width(Some(width.saturating_sub(1)));
    let lines = events.into_iter().flat_map(|event| {
        let text = text::event(event, &style, clock);
        let kinds = std::iter::once(Kind::Row).chain(std::iter::repeat(Kind::Note));
        kinds
            .zip(text.lines())
            .map(|(kind, line)| Text { kind, text: format!(" {line}") })
            .collect::<Vec<_>>()
    });
    let lines: Vec<Text> = lines.collect();
    if lines.is_empty() { vec![row(" nothing has happened yet")] } else { lines }
}
