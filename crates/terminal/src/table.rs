//! Columns that line up.

use crate::report::one_line;

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
    /// Their names, and whether they have numbers, which stand flush right.
    columns: Vec<(String, bool)>,
    rows: Vec<Vec<String>>,
    /// Lines between rows, in order, with the number of rows above them.
    between: Vec<(usize, Line)>,
    indent: &'static str,
}

impl Table {
    /// A table with these columns, each line indented. A name that begins with `>` is that of a column of numbers.
    pub fn new(indent: &'static str, columns: &[&str]) -> Self {
        let column = |name: &&str| match name.strip_prefix('>') {
            Some(name) => (name.to_owned(), true),
            None => ((*name).to_owned(), false),
        };
        Self { columns: columns.iter().map(column).collect(), rows: Vec::new(), between: Vec::new(), indent }
    }

    /// One more row, a cell a column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| one_line(&cell)).collect());
        debug_assert_eq!(self.rows.last().map(Vec::len), Some(self.columns.len()));
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
        let head = self.columns.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
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
                let is_number = self.columns[column].1;
                if is_number { format!("{cell:>width$}") } else { format!("{cell:<width$}") }
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
