//! What is known, and what is to be shown of it: changed by samples, events and keys alone.

use super::source::Sample;
use super::view;
use linkbraid_api::{BondRecord, Error, EventRecord, FabricRecord};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use std::collections::VecDeque;

/// Events that are kept, the newest first.
const EVENTS_MAX: usize = 1000;
/// Characters of a filter.
const FILTER_MAX: usize = 40;
/// Lines that a page key moves by.
const PAGE: usize = 10;

/// What fills the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Page {
    /// Bonds and fabrics with their members and nodes, and the last events.
    #[default]
    Members,
    /// Lanes.
    Lanes,
    /// Latency by class.
    Latency,
    /// Events.
    Events,
}

/// All pages, in the order of their tabs.
pub const PAGES: [(Page, &str); 4] = [
    (Page::Members, "members"),
    (Page::Lanes, "lanes"),
    (Page::Latency, "latency"),
    (Page::Events, "events"),
];

/// What the daemon has said.
#[derive(Debug, Clone, Default)]
pub struct Known {
    /// The last sample but one, for rates.
    pub before: Option<Sample>,
    /// The last sample.
    pub now: Option<Sample>,
    /// Events, the newest first.
    pub events: VecDeque<EventRecord>,
    /// Why the daemon says nothing now.
    pub trouble: Option<String>,
}

/// All that the screen depends on.
#[derive(Debug, Default)]
pub struct State {
    known: Known,
    /// What was known when it was paused.
    paused: Option<Known>,
    /// What fills the screen.
    pub page: Page,
    /// What lines have to contain to be shown.
    pub filter: String,
    /// Whether keys go into the filter.
    pub typing: bool,
    /// Lines of the page that are above the screen.
    pub scroll: usize,
}

impl State {
    /// What is to be shown.
    pub fn shown(&self) -> &Known {
        self.paused.as_ref().unwrap_or(&self.known)
    }

    /// Whether the screen stands still.
    pub fn is_paused(&self) -> bool {
        self.paused.is_some()
    }

    /// Takes in what the daemon said.
    pub fn sample(&mut self, sample: Result<Sample, Error>) {
        let known = &mut self.known;
        let sample = match sample {
            Ok(sample) => sample,
            Err(error) => {
                // The socket's name would leave no room for the rest.
                known.trouble = Some(format!("{}: {}", error.what, error.cause));
                return;
            }
        };
        known.trouble = None;
        if known.now.is_none() {
            // What happened before this command was started.
            let bonds = sample.bonds.iter().flat_map(|BondRecord { events, .. }| events);
            let fabrics = sample.fabrics.iter().flat_map(|FabricRecord { events, .. }| events);
            let mut events: Vec<EventRecord> = bonds.chain(fabrics).cloned().collect();
            events.sort_by_key(|event| event.time_ms);
            events.into_iter().for_each(|event| self.event(event));
        }
        self.known.before = self.known.now.replace(sample);
    }

    /// Takes in an event.
    pub fn event(&mut self, event: EventRecord) {
        let events = &mut self.known.events;
        // One of those before may come again.
        if !events.contains(&event) {
            events.push_front(event);
            events.truncate(EVENTS_MAX);
        }
    }

    /// Takes in a key; whether the command goes on.
    pub fn key(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && matches!(key.code, KeyCode::Char('c' | 'd')) {
            return false;
        }
        if self.typing {
            self.type_filter(key.code);
            return true;
        }
        let at = PAGES.iter().position(|(page, _)| *page == self.page).unwrap_or_default();
        let mut turn_to = |page: usize| {
            self.page = PAGES[page % PAGES.len()].0;
            self.scroll = 0;
        };
        match key.code {
            KeyCode::Char('q') => return false,
            KeyCode::Tab | KeyCode::Right => turn_to(at + 1),
            KeyCode::BackTab | KeyCode::Left => turn_to(at + PAGES.len() - 1),
            KeyCode::Char(digit @ '1'..='4') => turn_to(digit as usize - '1' as usize),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Esc => self.set_filter(String::new()),
            KeyCode::Char('p' | ' ') => {
                self.paused = self.paused.take().map_or_else(|| Some(self.known.clone()), |_| None);
            }
            KeyCode::Up | KeyCode::Char('k') => self.scroll = self.scroll.saturating_sub(1),
            KeyCode::PageUp => self.scroll = self.scroll.saturating_sub(PAGE),
            KeyCode::Down | KeyCode::Char('j') => self.scroll_by(1),
            KeyCode::PageDown => self.scroll_by(PAGE),
            KeyCode::Home => self.scroll = 0,
            KeyCode::End => self.scroll_by(usize::MAX),
            _ => {}
        }
        true
    }

    fn type_filter(&mut self, code: KeyCode) {
        let mut filter = self.filter.clone();
        match code {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.set_filter(String::new());
            }
            KeyCode::Backspace => {
                filter.pop();
                self.set_filter(filter);
            }
            KeyCode::Char(c) if filter.chars().count() < FILTER_MAX => {
                filter.push(c);
                self.set_filter(filter);
            }
            _ => {}
        }
    }

    fn set_filter(&mut self, filter: String) {
        self.filter = filter;
        self.scroll = 0;
    }

    fn scroll_by(&mut self, lines: usize) {
        let last = view::lines(self).saturating_sub(1);
        self.scroll = self.scroll.saturating_add(lines).min(last);
    }
}
