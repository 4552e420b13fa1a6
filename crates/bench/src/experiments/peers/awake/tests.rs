use super::*;

#[test]
fn it_rests_and_ends() {
    let state = Arc::new(State::default());
    let own = Arc::clone(&state);
    let awake = Awake { state, thread: Some(std::thread::spawn(move || spin(&own))) };
    awake.rest(true);
    awake.rest(false);
    awake.rest(true);
    // A thread that did not end would keep the test.
    drop(awake);
}
