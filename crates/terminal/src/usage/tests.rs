use super::*;
use clap::Arg;

#[test]
fn the_object_is_found_between_options() {
    let add = Command::new("add").arg(Arg::new("NAME"));
    let root = Command::new("linkbraid")
        .subcommand(Command::new("bond").subcommand(add))
        .subcommand(Command::new("show"));
    let find = |line: &str| Asked::find(root.clone(), line.split(' ').map(str::to_owned)).object();
    assert_eq!(find("--json bond --socket /x add bond0"), "bond add");
    assert_eq!(find("--nonsense"), "linkbraid");
    assert_eq!(find("show -- bond"), "show");
}
