//! `linkbraid lab` on real namespaces; needs root.

use std::process::{Command, Output};

/// A lab of its own for each test, taken down whatever happens.
struct Lab(String);

impl Lab {
    /// Short enough for a lab's name, and unlike that of a test that runs at the same time.
    fn new(letter: char) -> Self {
        Self(format!("{letter}{:06}", std::process::id() % 1_000_000))
    }

    fn linkbraid(&self, words: &str) -> (i32, String, String) {
        let words = words.replace("LAB", &self.0);
        let mut command = Command::new(env!("CARGO_BIN_EXE_linkbraid-lab"));
        let Output { status, stdout, stderr } = command.args(words.split(' ')).output().unwrap();
        (
            status.code().expect("no signal ended it"),
            String::from_utf8(stdout).unwrap(),
            String::from_utf8(stderr).unwrap(),
        )
    }

    fn done(&self, words: &str) -> String {
        let (code, out, err) = self.linkbraid(words);
        assert_eq!((code, err.as_str()), (0, ""), "{words}");
        out
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        // It is down already where the test got to its end.
        let _ = self.linkbraid("lab down LAB");
    }
}

#[test]
fn hosts_of_a_lab_reach_each_other_until_it_is_down() {
    let lab = Lab::new('u');
    let out = lab.done("lab up LAB --hosts 2 --links 2 --rate 100mbit");
    assert!(
        out.contains(": 2 hosts on one switch, each link 100 Mbit/s\n  a  2 links, 198.18.0.1/24"),
        "{out}"
    );
    let out = lab.done("lab exec a --lab LAB -- ping -c 1 -W 5 198.18.0.2");
    assert!(out.contains("1 received"), "{out}");

    let (code, _, err) = lab.linkbraid("lab up LAB");
    assert_eq!(code, 1);
    assert!(err.ends_with(&format!("  hint: linkbraid lab down {}\n", lab.0)), "{err}");

    lab.done("lab down LAB");
    let (code, _, err) = lab.linkbraid("lab exec a --lab LAB -- true");
    assert_eq!((code, err.lines().count()), (1, 2), "{err}");
}

#[test]
fn a_command_on_a_host_keeps_its_status_and_finds_its_own_daemon() {
    let lab = Lab::new('e');
    lab.done("lab up LAB --hosts 2 --links 1 --rate none");
    assert_eq!(lab.linkbraid("lab exec a --lab LAB -- sh -c exit${IFS}7").0, 7);
    let (code, _, err) = lab.linkbraid("lab exec b --lab LAB -- linkbraid show");
    assert_eq!(code, 3);
    assert!(err.contains("/b.sock: cannot reach the daemon"), "{err}");
    let (code, _, err) = lab.linkbraid("lab exec c --lab LAB -- true");
    assert_eq!(code, 1);
    assert!(err.contains("host 'c': no such host; there are a, b"), "{err}");
}
