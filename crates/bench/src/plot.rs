//! Figures: panels of lines or bars with error bars from the smallest to the largest value, drawn as SVG.

mod draw;

use crate::stats::Spread;

pub use draw::{panel_svg, svg};

#[derive(Debug, Clone, PartialEq)]
pub struct Figure {
    pub title: String,
    /// The panels, two in a row.
    pub panels: Vec<Panel>,
}

impl Figure {
    /// A figure without the panels that have nothing.
    pub fn of(title: &str, panels: impl IntoIterator<Item = Panel>) -> Self {
        let panels = panels.into_iter().filter(|panel| !panel.is_empty()).collect();
        Self { title: title.to_owned(), panels }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Points joined by lines; `x` is a number.
    Lines,
    /// A line through many points, none of them marked; `x` is a number.
    Curve,
    /// Bars in groups; `x` is the index of a group.
    Bars,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub title: String,
    pub x_label: String,
    /// What the y axis shows, with its unit.
    pub y_label: String,
    pub style: Style,
    /// Whether each decade of the y axis is as high as every other: for values that differ by orders of magnitude, all of
    /// them above 0.
    pub decades: bool,
    /// Where the x axis is labelled, and how.
    pub ticks: Vec<(f64, String)>,
    pub series: Vec<Series>,
    pub references: Vec<Reference>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    pub name: String,
    pub points: Vec<(f64, Spread)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Reference {
    pub name: String,
    pub points: Vec<(f64, f64)>,
}

/// Bars in groups, while a panel is put together: each group has a key that values are found by.
pub struct Groups<K> {
    groups: Vec<(String, K)>,
    series: Vec<(String, Vec<Option<Spread>>)>,
    flats: Vec<(String, f64)>,
}

impl<K: Clone> Groups<K> {
    /// The same with a bar for each group that has a value.
    #[must_use]
    pub fn bar(mut self, name: impl Into<String>, value: impl Fn(K) -> Option<Spread>) -> Self {
        self.series.push((name.into(), self.groups.iter().map(|(_, key)| value(key.clone())).collect()));
        self
    }

    /// The same with a line across all groups.
    #[must_use]
    pub fn flat(mut self, name: impl Into<String>, y: f64) -> Self {
        self.flats.push((name.into(), y));
        self
    }

    /// The same without groups in which nothing was measured.
    #[must_use]
    pub fn measured(mut self) -> Self {
        let is_measured = |group: usize| self.series.iter().any(|(_, values)| values[group].is_some());
        let keep: Vec<bool> = (0..self.groups.len()).map(is_measured).collect();
        let mut kept = keep.iter();
        self.groups.retain(|_| kept.next() == Some(&true));
        for (_, values) in &mut self.series {
            let mut kept = keep.iter();
            values.retain(|_| kept.next() == Some(&true));
        }
        self
    }

    /// The panel, with a title, and what the axes show.
    pub fn panel(self, title: impl Into<String>, x: &str, y: &str) -> Panel {
        let last = self.groups.len().max(1) as f64 - 0.5;
        let series = self.series.into_iter().map(|(name, values)| {
            let points = values.into_iter().enumerate();
            Series { name, points: points.filter_map(|(i, value)| Some((i as f64, value?))).collect() }
        });
        let panel = Panel::bars(self.groups.into_iter().map(|(name, _)| name).collect(), series.collect());
        let flats = self.flats.into_iter();
        let references =
            flats.map(|(name, y)| Reference { name, points: vec![(-0.5, y), (last, y)] }).collect();
        Panel { references, ..panel }.titled(title, x, y)
    }
}

impl Panel {
    pub fn groups<K>(groups: impl IntoIterator<Item = (String, K)>) -> Groups<K> {
        Groups { groups: groups.into_iter().collect(), series: Vec::new(), flats: Vec::new() }
    }

    pub fn over(numbers: impl IntoIterator<Item = f64>) -> Self {
        let ticks = numbers.into_iter().map(|x| (x, x.to_string())).collect();
        Self::new(Style::Lines, ticks, Vec::new())
    }

    /// The same with a line through the numbers that have a value; one without any is left out.
    #[must_use]
    pub fn line(self, name: impl Into<String>, value: impl Fn(f64) -> Option<Spread>) -> Self {
        let points: Vec<_> = self.ticks.iter().filter_map(|(x, _)| Some((*x, value(*x)?))).collect();
        self.curve(name, points)
    }

    /// The same with a line through these points; one without any is left out.
    #[must_use]
    pub fn curve(mut self, name: impl Into<String>, points: Vec<(f64, Spread)>) -> Self {
        if !points.is_empty() {
            self.series.push(Series { name: name.into(), points });
        }
        self
    }

    /// The same with a dashed line.
    #[must_use]
    pub fn reference(mut self, name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        self.references.push(Reference { name: name.into(), points });
        self
    }

    /// The same with a title, and what the axes show; a number without any value has no label.
    #[must_use]
    pub fn titled(mut self, title: impl Into<String>, x: &str, y: &str) -> Self {
        if self.style == Style::Lines {
            let is_there = |at: f64| self.series.iter().any(|s| s.points.iter().any(|(x, _)| *x == at));
            self.ticks.retain(|(x, _)| is_there(*x));
        }
        Self { title: title.into(), x_label: x.into(), y_label: y.into(), ..self }
    }

    /// The same with decades on its y axis.
    #[must_use]
    pub fn in_decades(self) -> Self {
        Self { decades: true, ..self }
    }

    /// Curves over numbers, the axis labelled at these.
    pub fn curves(ticks: Vec<f64>, series: Vec<Series>) -> Self {
        let ticks = ticks.into_iter().map(|x| (x, x.to_string())).collect();
        Self::new(Style::Curve, ticks, series)
    }

    pub fn bars(groups: Vec<String>, series: Vec<Series>) -> Self {
        let ticks = groups.into_iter().enumerate().map(|(i, name)| (i as f64, name)).collect();
        Self::new(Style::Bars, ticks, series)
    }

    pub fn is_empty(&self) -> bool {
        self.series.iter().all(|series| series.points.is_empty())
    }

    /// What was not measured has no place in the legend.
    fn new(style: Style, ticks: Vec<(f64, String)>, mut series: Vec<Series>) -> Self {
        series.retain(|series| !series.points.is_empty());
        Self {
            title: String::new(),
            x_label: String::new(),
            y_label: String::new(),
            style,
            decades: false,
            ticks,
            series,
            references: Vec::new(),
        }
    }

    /// The ends of the x axis: half a group, or a little, beyond the outermost values.
    fn x_range(&self) -> (f64, f64) {
        let points =
            self.series.iter().filter(|_| self.style == Style::Curve).flat_map(|series| &series.points);
        let outermost = self.ticks.iter().map(|(x, _)| *x).chain(points.map(|(x, _)| *x));
        let (low, high) = ends(outermost).unwrap_or((0.0, 0.0));
        let margin = match self.style {
            Style::Bars => 0.5,
            Style::Lines => ((high - low) * 0.06).max(0.25),
            Style::Curve => (high - low) * 0.01,
        };
        (low - margin, high + margin)
    }

    /// The ends of the y axis: from 0 to a little above all values; in decades, whole ones.
    fn y_range(&self) -> (f64, f64) {
        let values = self.series.iter().flat_map(|s| &s.points).flat_map(|(_, s)| [s.min, s.max]);
        let lines = self.references.iter().flat_map(|r| &r.points).map(|(_, y)| *y);
        let outermost = ends(values.chain(lines));
        if self.decades {
            let (low, high) = outermost.unwrap_or((0.0, 1.0));
            let (low, high) = ((low + NEARLY).floor(), (high - NEARLY).ceil());
            return (low, high.max(low + 1.0));
        }
        let top = outermost.map_or(0.0, |(_, high)| high.max(0.0));
        (0.0, if top > 0.0 { top * 1.06 } else { 1.0 })
    }

    /// The same panel with the logarithm of each value, where it has decades: what is drawn.
    fn scaled(mut self) -> Self {
        if !self.decades {
            return self;
        }
        let log = |y: &mut f64| *y = y.max(f64::MIN_POSITIVE).log10();
        for (_, spread) in self.series.iter_mut().flat_map(|series| &mut series.points) {
            [&mut spread.median, &mut spread.min, &mut spread.max].into_iter().for_each(log);
        }
        self.references.iter_mut().flat_map(|r| &mut r.points).for_each(|(_, y)| log(y));
        self
    }
}

/// A value so near the end of a decade is its end.
const NEARLY: f64 = 1e-9;

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, x| match ends {
        None => Some((x, x)),
        Some((low, high)) => Some((f64::min(low, x), f64::max(high, x))),
    })
}

#[cfg(test)]
mod tests;
