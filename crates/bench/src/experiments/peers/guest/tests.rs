use super::*;
use crate::report::tests::report;

#[test]
fn only_a_report_of_this_experiment_is_taken() {
    let folder = Scratch(std::env::temp_dir().join(format!("linkbraid-peers-test-{}", std::process::id())));
    assert_eq!(newest(&folder.0).expect("a folder that is not there has none"), None);
    std::fs::create_dir_all(&folder.0).expect("made");
    let write = |report: &Report| {
        let text = serde_json::to_string(report).expect("written");
        std::fs::write(folder.0.join("peers-1.json"), text).expect("written");
    };
    let own = Report { experiment: super::super::NAME.into(), ..report() };
    write(&own);
    assert_eq!(newest(&folder.0).expect("read"), Some(own));
    write(&report());
    assert!(newest(&folder.0).is_err());
}
