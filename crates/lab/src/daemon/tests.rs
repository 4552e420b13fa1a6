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
    std::fs::remove_dir_all(&folder).expect("removed");
}
