//! Draws a [`Figure`] with plotters.

use super::{Figure, Panel, Reference, Series, Style};
use crate::stats::Spread;
use linkbraid_api::Error;
use plotters::coord::Shift;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Axes<'a, 'b> = ChartContext<'b, SVGBackend<'a>, Cartesian2d<RangedCoordf64, RangedCoordf64>>;
type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

const PANEL: (u32, u32) = (660, 360);
const TITLE: u32 = 70;
const LEGEND: i32 = 190;
const LEGEND_LINE: i32 = 19;
const COLUMNS: usize = 2;
/// A panel by itself, without the legend below it.
const NARROW: (u32, u32) = (480, 320);
const LEGEND_MAX: u32 = 400;
const X_LABELS: u32 = 46;
const Y_LABELS: u32 = 62;
/// How many labels the y axis has, about.
const Y_TICKS: usize = 6;

/// Told apart also by people who see few colours (Okabe and Ito), without its yellow.
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(86, 180, 233),
    RGBColor(230, 159, 0),
    RGBColor(110, 110, 110),
];
const INK: RGBColor = RGBColor(40, 40, 40);
const GREY: RGBColor = RGBColor(120, 120, 120);
const GRID: RGBColor = RGBColor(225, 225, 225);

/// The figure as an SVG document; `below` is a line in small print under its title.
pub fn svg(figure: &Figure, below: &str) -> Result<String, Error> {
    let rows = figure.panels.len().div_ceil(COLUMNS).max(1);
    let columns = figure.panels.len().clamp(1, COLUMNS);
    let size = |count: usize, each: u32| u32::try_from(count).unwrap_or(1) * each;
    let whole = (size(columns, PANEL.0), size(rows, PANEL.1) + TITLE);
    document(&figure.title, whole, |root| {
        let (head, body) = root.split_vertically(TITLE);
        write(&head, &figure.title, (20, 18), 22, &INK, Pos::new(HPos::Left, VPos::Top))?;
        write(&head, below, (20, 48), 12, &GREY, Pos::new(HPos::Left, VPos::Top))?;
        for (panel, area) in figure.panels.iter().zip(body.split_evenly((rows, columns))) {
            one_panel(&area, &panel.clone().scaled())?;
        }
        Ok(())
    })
}

/// One panel as an SVG document of its own, narrow enough for a telephone: its legend is below it.
pub fn panel_svg(panel: &Panel) -> Result<String, Error> {
    let panel = panel.clone().scaled();
    let entries = u32::try_from(panel.series.len() + panel.references.len() + 1).unwrap_or(u32::MAX);
    let legend_height = (entries * LEGEND_LINE.unsigned_abs()).min(LEGEND_MAX);
    document(&panel.title, (NARROW.0, NARROW.1 + legend_height), |root| {
        let (plot, below) = root.split_vertically(NARROW.1);
        axes(&plot, &panel)?;
        legend(&below, &panel, (Y_LABELS.cast_signed(), LEGEND_LINE / 2))
    })
}

fn document(title: &str, size: (u32, u32), draw: impl FnOnce(&Area<'_>) -> Drawn) -> Result<String, Error> {
    let mut text = String::new();
    {
        let root = SVGBackend::with_string(&mut text, size).into_drawing_area();
        let drawn = root.fill(&WHITE).and_then(|()| draw(&root)).and_then(|()| root.present());
        drawn.map_err(|e| Error::new("plot", format!("cannot draw '{title}'"), e.to_string()))?;
    }
    Ok(text)
}

fn write(area: &Area<'_>, text: &str, at: (i32, i32), size: i32, colour: &RGBColor, pos: Pos) -> Drawn {
    let style = TextStyle::from(("sans-serif", size).into_font()).color(colour).pos(pos);
    area.draw(&Text::new(text.to_owned(), at, style))
}

fn one_panel(area: &Area<'_>, panel: &Panel) -> Drawn {
    let (width, _) = area.dim_in_pixel();
    let (plot, side) = area.split_horizontally(i32::try_from(width).unwrap_or(i32::MAX) - LEGEND);
    axes(&plot, panel)?;
    legend(&side, panel, (2, 44))
}

fn axes(plot: &Area<'_>, panel: &Panel) -> Drawn {
    let (low, high) = panel.x_range();
    let (bottom, top) = panel.y_range();
    let mut chart = ChartBuilder::on(plot)
        .caption(&panel.title, TextStyle::from(("sans-serif", 15).into_font()).color(&INK))
        .margin(10)
        .set_label_area_size(LabelAreaPosition::Left, Y_LABELS)
        .set_label_area_size(LabelAreaPosition::Bottom, X_LABELS)
        .build_cartesian_2d(low..high, bottom..top)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .x_labels(0)
        .y_labels(if panel.decades { (top - bottom).round() as usize + 1 } else { Y_TICKS })
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .axis_style(GREY)
        .y_desc(&panel.y_label)
        .axis_desc_style(TextStyle::from(("sans-serif", 13).into_font()).color(&INK))
        .label_style(TextStyle::from(("sans-serif", 12).into_font()).color(&INK))
        .y_label_formatter(&|y| if panel.decades { decade(*y) } else { number(*y, top) })
        .draw()?;
    x_axis(plot, &chart, panel)?;
    for reference in &panel.references {
        dashed(&mut chart, reference)?;
    }
    let count = panel.series.len();
    for (index, series) in panel.series.iter().enumerate() {
        match panel.style {
            Style::Lines => line(&mut chart, series, index, shift(index, count, (high - low) * 0.006))?,
            Style::Curve => curve(&mut chart, series, index)?,
            Style::Bars => bars(&mut chart, series, index, count, bottom)?,
        }
    }
    Ok(())
}

/// The labels under the axis, which plotters would put at numbers of its own choice.
fn x_axis(plot: &Area<'_>, chart: &Axes<'_, '_>, panel: &Panel) -> Drawn {
    let base = plot.get_base_pixel();
    let (bottom, _) = panel.y_range();
    let place = |x: f64| {
        let at = chart.backend_coord(&(x, bottom));
        (at.0 - base.0, at.1 - base.1)
    };
    let (low, high) = panel.x_range();
    for (x, name) in &panel.ticks {
        let at = place(*x);
        let centre = Pos::new(HPos::Center, VPos::Top);
        plot.draw(&PathElement::new(vec![at, (at.0, at.1 + 4)], GREY))?;
        write(plot, name, (at.0, at.1 + 8), 12, &INK, centre)?;
    }
    let middle = place(f64::midpoint(low, high));
    write(plot, &panel.x_label, (middle.0, middle.1 + 26), 13, &INK, Pos::new(HPos::Center, VPos::Top))
}

/// A number on the y axis, with as many digits as its axis needs.
fn number(y: f64, top: f64) -> String {
    match top {
        t if t >= 10.0 => format!("{y:.0}"),
        t if t >= 2.0 => format!("{y:.1}"),
        _ => format!("{y:.2}"),
    }
}

/// The power of ten at a whole number of decades; nothing between.
fn decade(y: f64) -> String {
    if (y - y.round()).abs() > 1e-6 {
        return String::new();
    }
    let digits = (-y.round()).max(0.0) as usize;
    format!("{:.digits$}", 10_f64.powf(y.round()))
}

/// Series a little beside each other, so that their error bars can be told apart.
fn shift(index: usize, count: usize, step: f64) -> f64 {
    (index as f64 - (count.saturating_sub(1)) as f64 / 2.0) * step
}

/// The colours, and then all of them again, pale.
fn colour(index: usize) -> RGBColor {
    let RGBColor(r, g, b) = COLOURS[index % COLOURS.len()];
    let pale = |c: u8| u8::midpoint(c, u8::MAX);
    if index < COLOURS.len() { RGBColor(r, g, b) } else { RGBColor(pale(r), pale(g), pale(b)) }
}

fn dashed(chart: &mut Axes<'_, '_>, reference: &Reference) -> Drawn {
    let style = ShapeStyle::from(&INK).stroke_width(1);
    chart.draw_series(DashedLineSeries::new(reference.points.clone(), 6, 4, style)).map(drop)
}

fn line(chart: &mut Axes<'_, '_>, series: &Series, index: usize, shift: f64) -> Drawn {
    let colour = colour(index);
    let points: Vec<(f64, Spread)> = series.points.iter().map(|(x, s)| (x + shift, *s)).collect();
    let middle = points.iter().map(|(x, s)| (*x, s.median));
    chart.draw_series(LineSeries::new(middle.clone(), colour.stroke_width(2)))?;
    chart.draw_series(middle.map(|at| Circle::new(at, 3, colour.filled())))?;
    errors(chart, points.into_iter(), colour)
}

fn curve(chart: &mut Axes<'_, '_>, series: &Series, index: usize) -> Drawn {
    let points = series.points.iter().map(|(x, s)| (*x, s.median));
    chart.draw_series(LineSeries::new(points, colour(index).stroke_width(1))).map(drop)
}

fn bars(chart: &mut Axes<'_, '_>, series: &Series, index: usize, count: usize, bottom: f64) -> Drawn {
    let colour = colour(index);
    let wide = 0.8 / count.max(1) as f64;
    let left = |x: f64| x - 0.4 + wide * index as f64;
    let bar = |(x, s): &(f64, Spread)| {
        Rectangle::new(
            [(left(*x) + wide * 0.06, bottom), (left(*x) + wide * 0.94, s.median)],
            colour.filled(),
        )
    };
    chart.draw_series(series.points.iter().map(bar))?;
    errors(chart, series.points.iter().map(|(x, s)| (left(*x) + wide / 2.0, *s)), INK)
}

/// From the smallest to the largest value, where they differ.
fn errors(chart: &mut Axes<'_, '_>, points: impl Iterator<Item = (f64, Spread)>, colour: RGBColor) -> Drawn {
    for (x, spread) in points.filter(|(_, spread)| spread.max > spread.min) {
        let ends = [spread.min, spread.max].map(|y| (x, y));
        chart.draw_series([PathElement::new(ends.to_vec(), colour)])?;
        let cap = |at| EmptyElement::at(at) + PathElement::new(vec![(-3, 0), (3, 0)], colour);
        chart.draw_series(ends.map(cap))?;
    }
    Ok(())
}

fn legend(side: &Area<'_>, panel: &Panel, (x, mut y): (i32, i32)) -> Drawn {
    let left = Pos::new(HPos::Left, VPos::Center);
    for (index, series) in panel.series.iter().enumerate() {
        let mark = Rectangle::new([(x, y - 5), (x + 12, y + 5)], colour(index).filled());
        side.draw(&mark)?;
        write(side, &series.name, (x + 19, y), 12, &INK, left)?;
        y += LEGEND_LINE;
    }
    for reference in &panel.references {
        for (from, to) in [(x - 2, x + 4), (x + 8, x + 14)] {
            side.draw(&PathElement::new(vec![(from, y), (to, y)], INK))?;
        }
        write(side, &reference.name, (x + 19, y), 12, &INK, left)?;
        y += LEGEND_LINE;
    }
    if panel.series.iter().flat_map(|s| &s.points).any(|(_, s)| s.max > s.min) {
        write(side, "bars from min to max", (x, y + 4), 11, &GREY, left)?;
    }
    Ok(())
}
