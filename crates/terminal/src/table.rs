//! Columns that line up.

use crate::report::one_line;

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For words.
    Left,
    /// For numbers.
    Right,
}

/// Between two columns.
const GAP: &str = "  ";

/// What stands between rows.
#[derive(Debug)]
enum Line {
    Note(String),
    Title(String),
}

/// Rows under a head, two spaces between columns, no spaces at line ends.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    /// Lines between rows, in order, with the number of rows above them.
    between: Vec<(usize, Line)>,
    indent: &'static str,
}

impl Table {
    /// A table with these columns, each line indented.
    pub fn new(indent: &'static str, columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), between: Vec::new(), indent }
    }

    /// One more row, a cell a column.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.map(|cell| one_line(&cell)).to_vec());
    }

    /// A line above the rows that follow, not indented.
    pub fn title(&mut self, text: &str) {
        self.between.push((self.rows.len(), Line::Title(one_line(text))));
    }

    /// A line below the last row that begins where its second column does.
    pub fn note(&mut self, text: &str) {
        self.between.push((self.rows.len(), Line::Note(one_line(text))));
    }

    /// The whole table; a column whose cells are all empty is left out.
    pub fn render(&self) -> String {
        let used = |column: usize| self.rows.iter().any(|row| !row[column].is_empty());
        let shown = (0..self.columns.len()).filter(|&column| used(column)).collect::<Vec<_>>();
        let head = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
        let mut widths = vec![0; head.len()];
        for row in std::iter::once(&head).chain(&self.rows) {
            for (width, cell) in widths.iter_mut().zip(row) {
                *width = (*width).max(cell.chars().count());
            }
        }
        let second = shown.first().map_or(0, |&column| self.indent.len() + widths[column] + GAP.len());
        let mut between = self.between.iter().peekable();
        let mut out = String::new();
        for (number, row) in std::iter::once(&head).chain(&self.rows).enumerate() {
            let cells = shown.iter().map(|&column| {
                let (cell, width) = (&row[column], widths[column]);
                match self.columns[column].1 {
                    Align::Left => format!("{cell:<width$}"),
                    Align::Right => format!("{cell:>width$}"),
                }
            });
            let line = cells.collect::<Vec<_>>().join(GAP);
            out.push_str(format!("{}{line}", self.indent).trim_end());
            out.push('\n');
            while let Some((_, line)) = between.next_if(|(above, _)| *above == number) {
                match line {
                    Line::Note(text) => out.push_str(&format!("{:second$}{text}\n", "")),
                    Line::Title(text) => out.push_str(&format!("{text}\n")),
                }
            }
        }
        out
    }
}
