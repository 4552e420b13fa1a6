use super::*;

fn digits(number: u8) -> String {
    (0..SECRET_LEN as u8).map(|at| format!("{:02x}", at.wrapping_mul(7).wrapping_add(number))).collect()
}

fn refused(text: &str) -> String {
    KeyFile::read(text).expect_err("is refused")
}

#[test]
fn a_file_reads_as_it_was_written() {
    let text = format!("# mine\n\n0a1b2c3d {} signs\n  FFFFFFFF   {}\n", digits(1), digits(2));
    let file = KeyFile::read(&text).expect("two keys");
    let ids: Vec<(String, bool)> = file.records().iter().map(|key| (key.id.to_string(), key.signs)).collect();
    assert_eq!(ids, [("0a1b2c3d".to_owned(), true), ("ffffffff".to_owned(), false)]);
    assert_eq!(file.keys()[1].secret[..3], [2, 9, 16]);
    assert_eq!(KeyFile::read(&file.text()).expect("reads"), file);
    let shown = format!("{file:?}");
    assert!(!shown.contains(&digits(1)[..8]), "no secret is printed: {shown}");
}

#[test]
fn each_bad_file_has_its_own_cause_and_none_repeats_a_secret() {
    let (one, two) = (digits(1), digits(2));
    for (text, cause) in [
        (String::new(), "it holds no key"),
        ("# nothing\n".to_owned(), "it holds no key"),
        (format!("1 {one} signs"), "line 1 does not begin with a key id of 8 hexadecimal digits"),
        (one.clone(), "line 1 does not begin with a key id of 8 hexadecimal digits"),
        ("00000001".to_owned(), "line 1: the secret of key 00000001 has 0 characters; it has to have 64"),
        (
            format!("\n00000001 {} signs", &one[..62]),
            "line 2: the secret of key 00000001 has 62 characters; it has to have 64",
        ),
        (
            format!("00000001 {}zz signs", &one[..62]),
            "line 1: the secret of key 00000001 holds something else than hexadecimal digits",
        ),
        (
            format!("00000001 {} signs", "00".repeat(32)),
            "line 1: the secret of key 00000001 is the same byte again and again, which anybody can guess",
        ),
        (format!("00000001 {one} sings"), "line 1: only 'signs' may follow the secret of key 00000001"),
        (format!("00000001 {one} signs {two}"), "line 1: only 'signs' may follow the secret of key 00000001"),
        (format!("00000001 {one}"), "no key has 'signs' behind it"),
        (format!("00000001 {one} signs\n00000002 {two} signs"), "more than one key has 'signs' behind it"),
        (format!("00000001 {one} signs\n00000001 {two}"), "two keys have the id 00000001"),
        (
            format!("00000001 {one} signs\n00000002 {two}\n00000003 {two}"),
            "it holds 3 keys; allowed are 1 or 2",
        ),
    ] {
        let refused = refused(&text);
        assert_eq!(refused, cause);
        assert!(!refused.contains(&one[..8]));
    }
}

#[test]
fn keys_are_exchanged_by_adding_signing_and_removing() {
    let key = |id| SecretKey { id: KeyId(id), secret: Zeroizing::new([id as u8; SECRET_LEN]) };
    let mut file = KeyFile::new(key(1));
    assert_eq!(file.add(key(1)), Err("it holds key 00000001 already".to_owned()));
    assert_eq!(file.sign_with(KeyId(2)), Err("it holds no key 00000002, but 00000001".to_owned()));
    assert_eq!(file.remove(KeyId(1)), Err("key 00000001 signs; let the other one sign first".to_owned()));
    file.add(key(2)).expect("there is room");
    assert!(file.add(key(3)).is_err());
    assert_eq!(file.signs(), KeyId(1));
    file.sign_with(KeyId(2)).expect("is there");
    file.remove(KeyId(1)).expect("does not sign");
    assert_eq!(file, KeyFile::new(key(2)));
}

#[test]
fn a_source_is_a_whole_path_or_a_credential() {
    for text in ["none", "/etc/linkbraid/bond0.key", "/etc/a key", "credential:bond0.key"] {
        assert_eq!(KeySource::read(text).expect("allowed").text(), text);
    }
    for text in ["", "bond0.key", "./key", "credential:", "credential:../x", "credential:a/b", "/a\nb"] {
        assert!(KeySource::read(text).is_err(), "{text}");
    }
    assert!(
        Auth::read("always")
            .is_err_and(|cause| cause.contains("off, permit, require") || cause.contains("permit"))
    );
}
