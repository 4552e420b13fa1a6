//! The figure of `copies`: Fig. 6, and the gains of Table 2.

use super::{COPIES, KINDS, METRIC, SIZES, id};
use crate::plot::{Figure, Panel};
use crate::report::Report;
use crate::stats::Spread;

/// The gain that the paper found, the smallest and the largest.
const PAPER_GAIN: [f64; 2] = [2.3, 3.0];

pub(super) fn draw(report: &Report) -> Figure {
    let [one, two] = KINDS;
    let [least, most] = PAPER_GAIN.map(|gain| (format!("the paper, all remote: {gain:.1}"), gain));
    let panel =
        |title: &str, y: &str, panel: Panel| panel.titled(title, "copies that are remote, of eight", y);
    let rates = |kind| by_size(|size, remote| report.spread(&id(kind, size, remote), METRIC));
    let gains = by_size(|size, remote| report.beside(&id(two, size, remote), METRIC, &id(one, size, remote)));
    let flat = |panel: Panel, (name, y)| panel.reference(name, vec![(0.0, y), (COPIES as f64, y)]);
    let panels = vec![
        panel("One link", "MB/s", rates(one)),
        panel("Two links, bonded", "MB/s", rates(two)),
        flat(flat(panel("Two links over one", "ratio", gains), least), most),
    ];
    Figure { title: "copies: eight files at once".into(), panels }
}

/// Values over the number of remote copies, a line a size.
fn by_size(value: impl Fn(usize, usize) -> Option<Spread>) -> Panel {
    let all = Panel::over((0..=COPIES).map(|remote| remote as f64));
    SIZES
        .into_iter()
        .fold(all, |panel, size| panel.line(format!("{size} MB"), |remote| value(size, remote as usize)))
}
