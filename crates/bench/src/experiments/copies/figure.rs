//! The figure of `copies`: Fig. 6, and the gains of Table 2.

use super::{COPIES, KINDS, METRIC, SIZES, id};
use crate::plot::{Figure, Panel, Reference, Series};
use crate::report::Report;
use crate::stats::Spread;

/// The gain that the paper found, the smallest and the largest.
const PAPER_GAIN: [f64; 2] = [2.3, 3.0];

pub(super) fn draw(report: &Report) -> Figure {
    let [one, two] = KINDS;
    let rates =
        |kind: &'static str| by_size(|size, remote| report.measure(&id(kind, size, remote), METRIC)?.spread);
    let gains = by_size(|size, remote| {
        report.measure(&id(two, size, remote), METRIC)?.beside(&id(one, size, remote))?.ratio
    });
    let panel = |title: &str, y: &str, series| Panel {
        title: title.into(),
        x_label: "copies that are remote, of eight".into(),
        y_label: y.into(),
        ..Panel::lines(series)
    };
    let flat =
        |name: &str, y: f64| Reference { name: name.into(), points: vec![(0.0, y), (COPIES as f64, y)] };
    let [least, most] = PAPER_GAIN;
    let panels = vec![
        panel("One link", "MB/s", rates(one)),
        panel("Two links, bonded", "MB/s", rates(two)),
        Panel {
            references: vec![
                flat(&format!("the paper, all remote: {least:.1}"), least),
                flat(&format!("the paper, all remote: {most:.1}"), most),
            ],
            ..panel("Two links over one", "ratio", gains)
        },
    ];
    Figure { title: "copies: eight files at once".into(), panels }
}

/// Values over the number of remote copies, a line a size.
fn by_size(value: impl Fn(usize, usize) -> Option<Spread>) -> Vec<Series> {
    let line = |size: usize| Series {
        name: format!("{size} MB"),
        points: (0..=COPIES).filter_map(|remote| Some((remote as f64, value(size, remote)?))).collect(),
    };
    SIZES.map(line).into_iter().filter(|series| !series.points.is_empty()).collect()
}
