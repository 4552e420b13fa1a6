use super::*;
use crate::report::tests::report;

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("linkbraid-collect-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("made");
    folder
}

#[test]
fn the_newest_whole_report_of_each_experiment_is_taken() {
    let folder = folder("newest");
    for (time, about) in [("20250102T030405Z", "old"), ("20260102T030405Z", "new")] {
        let report =
            Report { experiment: "overhead".into(), about: about.into(), started: time.into(), ..report() };
        crate::save(&report, &folder).expect("saved");
    }
    fs::write(folder.join("overhead-20270102T030405Z.json"), "{").expect("written");
    fs::write(folder.join("overhead.json"), "{").expect("written");
    let found = Collected::from_folder(&folder);
    fs::remove_dir_all(&folder).expect("removed");
    let found = found.expect("read");
    assert_eq!(found.reports.iter().map(|r| r.about.as_str()).collect::<Vec<_>>(), ["new"]);
    assert_eq!(found.unread.len(), 1, "{:?}", found.unread);
    assert_eq!(found.missing.len(), EXPERIMENTS.len() - 1);
    assert!(found.missing.iter().all(|reason| reason.id != "overhead"));
}

#[test]
fn an_empty_folder_and_none_at_all_are_refused_with_what_to_do() {
    let folder = folder("empty");
    let empty = Collected::from_folder(&folder);
    fs::remove_dir_all(&folder).expect("removed");
    for error in [empty, Collected::from_folder(&folder)].map(|found| found.expect_err("nothing there")) {
        assert!(
            error.hint.as_deref().is_some_and(|hint| hint.starts_with("linkbraid bench run all")),
            "{error}"
        );
    }
}

#[test]
fn a_report_of_another_layout_is_named() {
    let folder = folder("layout");
    let report = Report { experiment: "overhead".into(), ..report() };
    let saved = crate::save(&report, &folder).expect("saved");
    let text = fs::read_to_string(&saved.json).expect("read");
    fs::write(&saved.json, text.replacen("\"schema\": 2", "\"schema\": 999", 1)).expect("written");
    let (read, found) = (read(&saved.json), Collected::look(&folder));
    fs::remove_dir_all(&folder).expect("removed");
    let Collected { reports, unread, .. } = found.expect("a folder");
    assert_eq!((reports.len(), unread.len()), (0, 1));
    assert_eq!(read, Err("it has layout 999, this program reads 2".to_owned()));
}
