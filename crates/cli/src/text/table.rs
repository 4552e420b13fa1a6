//! Columns that line up.

/// How a column stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
}

/// Rows under a head, two spaces between columns, no spaces at line ends.
#[derive(Debug)]
pub struct Table {
    columns: Vec<(&'static str, Align)>,
    rows: Vec<Vec<String>>,
    indent: &'static str,
}

impl Table {
    /// A table with these columns, each line indented.
    pub fn new(indent: &'static str, columns: &[(&'static str, Align)]) -> Self {
        Self { columns: columns.to_vec(), rows: Vec::new(), indent }
    }

    /// One more row, a cell a column.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        debug_assert_eq!(N, self.columns.len());
        self.rows.push(cells.to_vec());
    }

    /// The whole table; a column whose cells are all empty is left out.
    pub fn render(&self) -> String {
        let used = |column: usize| self.rows.iter().any(|row| !row[column].is_empty());
        let shown = (0..self.columns.len()).filter(|&column| used(column)).collect::<Vec<_>>();
        let head = self.columns.iter().map(|(name, _)| (*name).to_owned()).collect::<Vec<_>>();
        let width = |column: usize| {
            let cells = self.rows.iter().map(|row| row[column].chars().count());
            cells.chain([head[column].chars().count()]).max().unwrap_or_default()
        };
        let mut out = String::new();
        for row in std::iter::once(&head).chain(&self.rows) {
            let mut line = self.indent.to_owned();
            for (place, &column) in shown.iter().enumerate() {
                if place > 0 {
                    line.push_str("  ");
                }
                let width = width(column);
                line.push_str(&match self.columns[column].1 {
                    Align::Left => format!("{:<width$}", row[column]),
                    Align::Right => format!("{:>width$}", row[column]),
                });
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}
