use super::*;

fn incident(near: Option<f64>, far: Option<f64>) -> Incident {
    Incident { watched_ms: 1000.0, detected_ms: near, detected_far_ms: far, ..Incident::default() }
}

#[test]
fn a_failure_that_a_daemon_missed_counts_with_the_time_it_was_watched() {
    let medians = |incidents: &[Incident]| FailoverMedians::of(incidents);
    let both = medians(&[incident(Some(10.0), Some(30.0))]);
    assert_eq!(both.detected_ms.map(|s| s.median), Some(10.0));
    assert_eq!(both.detected_far_ms.map(|s| s.median), Some(30.0));
    let one = medians(&[incident(Some(40.0), None)]);
    assert_eq!(one.detected_far_ms.map(|s| s.median), Some(1000.0), "it never knew");
    assert_eq!(medians(&[incident(None, None)]).detected_ms, None, "such a daemon tells no events");
    let some = medians(&[incident(None, None), incident(Some(1.0), Some(2.0))]).detected_ms.expect("told");
    assert_eq!((some.min, some.max), (1.0, 1000.0), "this one does, and missed one failure");
}

#[test]
fn what_only_some_traffic_has_is_left_out_of_the_others_medians() {
    let tcp = Incident { gap_ms: 20.0, back_ms: Some(50.0), ..Incident::default() };
    let medians = FailoverMedians::of(std::slice::from_ref(&tcp));
    assert_eq!((medians.lost, medians.return_lost), (None, None));
    assert_eq!(medians.back_ms.map(|s| s.median), Some(50.0));
    let back = Return { used_ms: 400.0, lost: Some(3), ..Return::default() };
    let udp = Incident { lost: Some(7), restored: Some(back), back_ms: None, ..tcp };
    let medians = FailoverMedians::of(&[udp]);
    assert_eq!(medians.lost.map(|s| s.median), Some(7.0));
    assert_eq!(medians.return_lost.map(|s| s.median), Some(3.0));
    assert_eq!(medians.used_again_ms.map(|s| s.median), Some(400.0));
    assert_eq!(medians.back_ms, None);
}
