//! A flow from rows (own members) to columns (the peer's members) over allowed pairs.

/// Loads may differ by this many bit/s and still count as equal: rounding of shares.
const SLACK: u64 = 64;

/// What each pair carries and what each side could still carry, in bit/s.
#[derive(Debug, Clone)]
pub(super) struct Flow<'a> {
    allowed: &'a [Vec<bool>],
    rows_left: Vec<u64>,
    columns_left: Vec<u64>,
    pub loads: Vec<Vec<u64>>,
}

/// What could still be reached from rows that have something left.
pub(super) struct Reach {
    pub rows: Vec<bool>,
    pub columns: Vec<bool>,
    /// For each reached column the row it was reached from.
    from_row: Vec<usize>,
    /// For each row reached backwards the column it was reached from.
    from_column: Vec<Option<usize>>,
}

impl<'a> Flow<'a> {
    pub fn empty(rows: &[u64], columns: &[u64], allowed: &'a [Vec<bool>]) -> Flow<'a> {
        Flow {
            allowed,
            rows_left: rows.to_vec(),
            columns_left: columns.to_vec(),
            loads: vec![vec![0; columns.len()]; rows.len()],
        }
    }

    pub fn maximal(rows: &[u64], columns: &[u64], allowed: &'a [Vec<bool>]) -> Flow<'a> {
        let mut flow = Flow::empty(rows, columns, allowed);
        flow.complete();
        flow
    }

    pub fn total(&self) -> u64 {
        self.loads.iter().flatten().sum()
    }

    fn push(&mut self, row: usize, column: usize) {
        let amount = self.rows_left[row].min(self.columns_left[column]);
        self.loads[row][column] += amount;
        self.rows_left[row] -= amount;
        self.columns_left[column] -= amount;
    }

    /// Gives each row a column that wants just as much, that of the same rank if possible: no better lane exists.
    pub fn pair_equals(&mut self) {
        let equal = |flow: &Self, row: usize, column: usize| {
            let (give, take) = (flow.rows_left[row], flow.columns_left[column]);
            flow.allowed[row][column] && give.min(take) > SLACK && give.abs_diff(take) <= SLACK
        };
        let (rows, columns) = (self.rows_left.len(), self.columns_left.len());
        for rank in 0..rows.min(columns) {
            if equal(self, rank, rank) {
                self.push(rank, rank);
            }
        }
        for row in 0..rows {
            if let Some(column) = (0..columns).find(|column| equal(self, row, *column)) {
                self.push(row, column);
            }
        }
    }

    /// The northwest corner rule: in the order given, each pair gets all that both can still carry.
    pub fn fill_in_order(&mut self) {
        for row in 0..self.rows_left.len() {
            for column in 0..self.columns_left.len() {
                if self.allowed[row][column] {
                    self.push(row, column);
                }
            }
        }
    }

    /// Makes the flow maximal: shortest augmenting paths (Edmonds, Karp 1972).
    pub fn complete(&mut self) {
        loop {
            let reach = self.reach();
            let open = |column: &usize| reach.columns[*column] && self.columns_left[*column] > 0;
            let Some(end) = (0..self.columns_left.len()).find(open) else { return };
            self.augment(&reach, end);
        }
    }

    /// Breadth first from every row with something left: forward over allowed pairs, back over loaded ones.
    pub fn reach(&self) -> Reach {
        let (rows, columns) = (self.rows_left.len(), self.columns_left.len());
        let mut reach = Reach {
            rows: self.rows_left.iter().map(|left| *left > 0).collect(),
            columns: vec![false; columns],
            from_row: vec![0; columns],
            from_column: vec![None; rows],
        };
        let mut queue: Vec<usize> = (0..rows).filter(|row| reach.rows[*row]).collect();
        let mut at = 0;
        while at < queue.len() {
            let row = queue[at];
            at += 1;
            for column in 0..columns {
                if !self.allowed[row][column] || std::mem::replace(&mut reach.columns[column], true) {
                    continue;
                }
                reach.from_row[column] = row;
                for back in 0..rows {
                    if self.loads[back][column] > 0 && !std::mem::replace(&mut reach.rows[back], true) {
                        reach.from_column[back] = Some(column);
                        queue.push(back);
                    }
                }
            }
        }
        reach
    }

    fn augment(&mut self, reach: &Reach, end: usize) {
        let mut path = Vec::new();
        let mut column = end;
        let start = loop {
            let row = reach.from_row[column];
            path.push((row, column));
            match reach.from_column[row] {
                Some(before) => column = before,
                None => break row,
            }
        };
        // Every step back takes load from (row, column it was reached from).
        let backs: Vec<(usize, usize)> = path.windows(2).map(|pair| (pair[0].0, pair[1].1)).collect();
        let least = backs.iter().map(|(row, column)| self.loads[*row][*column]).min().unwrap_or(u64::MAX);
        let amount = least.min(self.rows_left[start]).min(self.columns_left[end]);
        path.iter().for_each(|(row, column)| self.loads[*row][*column] += amount);
        backs.iter().for_each(|(row, column)| self.loads[*row][*column] -= amount);
        self.rows_left[start] -= amount;
        self.columns_left[end] -= amount;
    }

    /// Shifts load round each cycle of loaded pairs until one of them carries nothing: a forest of lanes is left, with
    /// fewer lanes than members. The thinnest pair of a cycle goes.
    pub fn cancel_cycles(&mut self) {
        while let Some(cycle) = self.cycle() {
            let load = |(row, column): &(usize, usize)| self.loads[*row][*column];
            let thinnest = (0..cycle.len()).min_by_key(|at| load(&cycle[*at])).unwrap_or(0);
            let amount = load(&cycle[thinnest]);
            for (at, (row, column)) in cycle.into_iter().enumerate() {
                if at % 2 == thinnest % 2 {
                    self.loads[row][column] -= amount;
                } else {
                    self.loads[row][column] += amount;
                }
            }
        }
    }

    /// The pairs of one cycle in order, rows and columns in turn; none if the loaded pairs form a forest.
    fn cycle(&self) -> Option<Vec<(usize, usize)>> {
        let rows = self.rows_left.len();
        let mut parent: Vec<Option<usize>> = vec![None; rows + self.columns_left.len()];
        let mut seen = vec![false; parent.len()];
        for root in 0..rows {
            if seen[root] {
                continue;
            }
            seen[root] = true;
            let mut stack = vec![root];
            while let Some(node) = stack.pop() {
                for next in self.neighbours(node) {
                    if parent[node] == Some(next) {
                        continue;
                    }
                    if seen[next] {
                        return Some(self.close(node, next, &parent));
                    }
                    seen[next] = true;
                    parent[next] = Some(node);
                    stack.push(next);
                }
            }
        }
        None
    }

    /// Nodes are rows, then columns.
    fn neighbours(&self, node: usize) -> Vec<usize> {
        let (rows, columns) = (self.rows_left.len(), self.columns_left.len());
        if node < rows {
            (0..columns).filter(|column| self.loads[node][*column] > 0).map(|column| rows + column).collect()
        } else {
            (0..rows).filter(|row| self.loads[*row][node - rows] > 0).collect()
        }
    }

    /// The cycle that the edge between `a` and `b` closes in the tree of parents.
    fn close(&self, a: usize, b: usize, parent: &[Option<usize>]) -> Vec<(usize, usize)> {
        let up =
            |from: usize| std::iter::successors(Some(from), |node| parent[*node]).collect::<Vec<usize>>();
        let (from_a, mut from_b) = (up(a), up(b));
        let meet = from_a.iter().position(|node| from_b.contains(node)).unwrap_or(0);
        let mut ring = from_a[..=meet].to_vec();
        from_b.truncate(from_b.iter().position(|node| *node == from_a[meet]).unwrap_or(0));
        ring.extend(from_b.into_iter().rev());
        let rows = self.rows_left.len();
        let edge = |one: usize, other: usize| (one.min(other), one.max(other) - rows);
        let next = |at: usize| ring[(at + 1) % ring.len()];
        ring.iter().enumerate().map(|(at, node)| edge(*node, next(at))).collect()
    }
}
