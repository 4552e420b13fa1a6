//! How much each member carries: no member more than it must, in proportion to its capacity.

use super::flow::Flow;

/// The same pairs seen from the other side.
pub(super) fn transposed(allowed: &[Vec<bool>], columns: usize) -> Vec<Vec<bool>> {
    (0..columns).map(|column| allowed.iter().map(|row| row[column]).collect()).collect()
}

/// Loads of the rows with which `total` still gets through, the highest utilisation as low as possible, then the next
/// highest, and so on. `total` must be feasible with `rows` as they are.
///
/// Each round finds the lowest common utilisation of the rows that are still free: it begins with the ratio of sums
/// and, while a cut is too narrow, raises it to what that cut needs (a Newton iteration over cuts, which ends
/// because each cut comes once). The rows of the last cut cannot go lower and are settled; the others go on.
pub(super) fn even(rows: &[u64], columns: &[u64], allowed: &[Vec<bool>], total: u64) -> Vec<u64> {
    let mut settled: Vec<Option<u64>> = vec![None; rows.len()];
    while settled.contains(&None) {
        let mut cut: Vec<bool> = settled.iter().map(Option::is_none).collect();
        let mut needed = total.saturating_sub(settled.iter().flatten().sum());
        let mut loads = loads_at(rows, &settled, &cut, needed);
        while let Some((narrow, through)) = too_narrow(&loads, columns, allowed, total) {
            let fixed: u64 = in_cut(&narrow, &settled).sum();
            let free: Vec<bool> =
                narrow.iter().zip(&settled).map(|(cut, load)| *cut && load.is_none()).collect();
            needed = total.saturating_sub(through).saturating_sub(fixed);
            let higher = loads_at(rows, &settled, &free, needed);
            // Rounding may leave a few bit/s unreachable: what cannot be raised is as good as it gets.
            if !free.contains(&true) || higher.iter().zip(&loads).all(|(higher, load)| higher <= load) {
                break;
            }
            (cut, loads) = (free, higher);
        }
        for (row, load) in settled.iter_mut().enumerate().filter(|(row, _)| cut[*row]) {
            *load = load.or(Some(loads[row]));
        }
    }
    settled.into_iter().flatten().collect()
}

fn in_cut(cut: &[bool], settled: &[Option<u64>]) -> impl Iterator<Item = u64> {
    cut.iter().zip(settled).filter_map(|(cut, load)| load.filter(|_| *cut))
}

/// Settled rows as they are, the others at the utilisation with which the rows of `cut` carry `needed`.
fn loads_at(rows: &[u64], settled: &[Option<u64>], cut: &[bool], needed: u64) -> Vec<u64> {
    let sum: u128 = rows.iter().zip(cut).filter(|(_, cut)| **cut).map(|(row, _)| u128::from(*row)).sum();
    let share = |row: u64| {
        let load = (u128::from(row) * u128::from(needed)).div_ceil(sum.max(1));
        u64::try_from(load).unwrap_or(u64::MAX).min(row)
    };
    rows.iter().zip(settled).map(|(row, load)| load.unwrap_or_else(|| share(*row))).collect()
}

/// The cut that keeps `total` from getting through: its rows, and what goes past them through its columns.
fn too_narrow(rows: &[u64], columns: &[u64], allowed: &[Vec<bool>], total: u64) -> Option<(Vec<bool>, u64)> {
    let flow = Flow::maximal(rows, columns, allowed);
    if flow.total() >= total {
        return None;
    }
    let reach = flow.reach();
    let through =
        columns.iter().zip(&reach.columns).filter(|(_, reached)| **reached).map(|(column, _)| column).sum();
    Some((reach.rows.iter().map(|reached| !reached).collect(), through))
}
