//! A picture (SVG) of what a terminal shows, for the documents.

use std::fmt::Write as _;
use vt100::{Cell, Color, Screen};

/// Of one character, and of a line.
const WIDTH: f64 = 8.4;
const HEIGHT: u16 = 18;
const EDGE: u16 = 10;
const FORE: &str = "#d0d0d0";
const BACK: &str = "#1c1c1c";
/// The first 16 colours of a terminal.
const PALETTE: [&str; 16] = [
    "#1c1c1c", "#d75f5f", "#87af5f", "#d7af5f", "#5f87d7", "#af87d7", "#5fafaf", "#d0d0d0", "#808080",
    "#ff8787", "#afd787", "#ffd787", "#87afff", "#d7afff", "#87d7d7", "#ffffff",
];

fn colour(colour: Color, default: &str) -> String {
    match colour {
        Color::Default => default.to_owned(),
        Color::Idx(index) => (*PALETTE.get(usize::from(index)).unwrap_or(&default)).to_owned(),
        Color::Rgb(red, green, blue) => format!("#{red:02x}{green:02x}{blue:02x}"),
    }
}

/// Foreground, background, and whether it is bold.
fn look(cell: &Cell) -> (String, String, bool) {
    let (fore, back) = (colour(cell.fgcolor(), FORE), colour(cell.bgcolor(), BACK));
    if cell.inverse() { (back, fore, cell.bold()) } else { (fore, back, cell.bold()) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// All that it shows.
pub fn of(screen: &Screen) -> String {
    let (rows, columns) = screen.size();
    let (width, height) = (f64::from(columns) * WIDTH + f64::from(2 * EDGE), rows * HEIGHT + 2 * EDGE);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height}\" font-family=\"monospace\" \
         font-size=\"14\">\n<rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"{BACK}\"/>\n"
    );
    for row in 0..rows {
        let mut column = 0;
        while column < columns {
            let Some(first) = screen.cell(row, column) else { break };
            let like = look(first);
            let begin = column;
            let mut text = String::new();
            while let Some(cell) = screen.cell(row, column).filter(|cell| look(cell) == like) {
                text.push_str(if cell.has_contents() { cell.contents() } else { " " });
                column += 1;
            }
            let (fore, back, bold) = like;
            let (x, y) = (f64::from(EDGE) + f64::from(begin) * WIDTH, EDGE + row * HEIGHT);
            let long = f64::from(column - begin) * WIDTH;
            if back != BACK {
                let _ = writeln!(
                    svg,
                    "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{long:.1}\" height=\"{HEIGHT}\" fill=\"{back}\"/>"
                );
            }
            if !text.trim().is_empty() {
                let weight = if bold { " font-weight=\"bold\"" } else { "" };
                let _ = writeln!(
                    svg,
                    "<text x=\"{x:.1}\" y=\"{}\" fill=\"{fore}\" textLength=\"{long:.1}\" \
                     xml:space=\"preserve\"{weight}>{}</text>",
                    y + HEIGHT - 4,
                    escaped(&text)
                );
            }
        }
    }
    svg + "</svg>\n"
}
