use super::*;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// 1000 bytes a millisecond for a second, without those of 300 to 379.
fn stalled() -> Progress {
    let mut progress = Progress::default();
    (0..1000).filter(|at| !(300..380).contains(at)).for_each(|at| progress.add(ms(at), 1000));
    progress
}

#[test]
fn the_longest_gap_is_found_and_clipped_to_its_window() {
    let progress = stalled();
    assert_eq!(progress.longest_gap(ms(0), ms(1000)), ms(81), "from the arrival at 299 to that at 380");
    assert_eq!(progress.longest_gap(ms(0), ms(300)), ms(1));
    assert_eq!(progress.longest_gap(ms(0), ms(340)), ms(41), "what is inside");
    assert_eq!(progress.longest_gap(ms(340), ms(500)), ms(40), "what is inside");
    assert_eq!(progress.longest_gap(ms(310), ms(350)), ms(40), "all of it");
    assert_eq!(progress.longest_gap(ms(900), ms(1500)), ms(501), "nothing came any more");
    assert_eq!(Progress::default().longest_gap(ms(10), ms(30)), ms(20));
    assert_eq!(progress.longest_gap(ms(30), ms(10)), ms(0), "a window that ends before it begins");
}

#[test]
fn what_arrives_close_together_is_one_point_and_is_all_counted() {
    let mut progress = Progress::default();
    (0..1000).for_each(|us| progress.add(Duration::from_micros(us), 2));
    assert_eq!(progress.total(), 2000);
    assert_eq!(progress.points.len(), 5);
    assert_eq!(progress.between(ms(0), ms(1)), 2000);
}

#[test]
fn what_is_between_two_times_includes_the_first_alone() {
    let progress = stalled();
    assert_eq!(progress.between(ms(0), ms(1)), 1000);
    assert_eq!(progress.between(ms(290), ms(390)), 20_000);
    assert_eq!(progress.between(ms(300), ms(380)), 0);
    assert_eq!(progress.between(ms(2000), ms(3000)), 0);
    assert_eq!(progress.bins(ms(290), ms(30), 4), [10_000, 0, 0, 30_000]);
}

#[test]
fn a_rate_is_reached_where_a_whole_window_brings_it() {
    let progress = stalled();
    let reaches = |from, amount| progress.reaches(ms(from), ms(1000), ms(50), amount);
    assert_eq!(reaches(0, 50_000), Some(ms(0)));
    assert_eq!(reaches(300, 50_000), Some(ms(80)));
    assert_eq!(reaches(300, 40_000), Some(ms(70)), "80 % of it are inside from 370 to 420");
    assert_eq!(reaches(0, 60_000), None);
    assert_eq!(reaches(980, 20_000), None, "the window does not fit any more");
}
