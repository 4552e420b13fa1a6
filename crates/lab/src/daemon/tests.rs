use super::*;

#[test]
fn a_test_finds_the_binary_of_its_own_profile_first() {
    let folder = std::env::temp_dir().join(format!("linkbraid-lab-{}", std::process::id()));
    let make = |path: &str| {
        let path = folder.join(path);
        std::fs::create_dir_all(path.parent().expect("has one")).expect("made");
        std::fs::write(&path, "").expect("written");
        path
    };
    let release = make("target/release/linkbraid");
    let test = folder.join("target/debug/deps/test-0123");
    assert_eq!(find_beside(&test), Some(release.clone()), "the other profile is better than none");
    let debug = make("target/debug/linkbraid");
    assert_eq!(find_beside(&test), Some(debug.clone()));
    assert_eq!(find_beside(&release), Some(release));
    assert_eq!(find_beside(&folder.join("elsewhere/a/b/c/d")), None);
    let installed = make("prefix/bin/linkbraid");
    assert_eq!(find_beside(&folder.join("prefix/libexec/linkbraid/linkbraid-lab")), Some(installed));
    std::fs::remove_dir_all(&folder).expect("removed");
}

#[test]
fn a_socket_that_listens_is_no_daemon_that_answers() {
    let folder = std::env::temp_dir().join(format!("linkbraid-lab-answer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("made");
    let path = folder.join("sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).expect("bound");
    // As a daemon that is still taking over what an earlier one left: connections wait in the backlog.
    let error = answers(&path).expect_err("nobody answers");
    assert!(matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut), "{error}");
    let thread = std::thread::spawn(move || {
        // The one that was given up, then the next.
        let _first = listener.accept().expect("accepted");
        let (stream, _) = listener.accept().expect("accepted");
        let mut question = Vec::new();
        BufReader::new(&stream).read_until(0, &mut question).expect("read");
        (&stream).write_all(b"{}\0").expect("written");
        question
    });
    answers(&path).expect("answered");
    let question = thread.join().expect("ended");
    let question: Method =
        serde_json::from_slice(question.strip_suffix(&[0]).expect("whole")).expect("a call");
    assert_eq!(Request::try_from(question).expect("a request"), Request::Show { name: None });
    std::fs::remove_dir_all(&folder).expect("removed");
}
