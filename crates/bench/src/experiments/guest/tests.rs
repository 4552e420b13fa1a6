use super::*;

#[test]
fn scripts_are_found_from_inside_the_tree() {
    for script in
        [super::super::peers::SCRIPT, super::super::tipc::SCRIPT, super::super::cpu_limit::guest::SCRIPT]
    {
        let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), script).expect("this is in the tree");
        assert!(found.ends_with(script) && find(Path::new("/"), script).is_none());
    }
}

#[test]
fn a_line_of_the_script_is_a_figure() {
    let figure_in = super::super::cpu_limit::guest::figure_in;
    let line = "frames             2  auto        190.0   1.990       0     28000      2.2";
    assert_eq!(figure_in(line), Some((2, 190.0)));
    assert_eq!(figure_in("frames 1 - 95.5 1.000 0 28000 -"), Some((1, 95.5)));
    for other in [
        "kernel 6.1.0, 3 x 3 s a figure",
        "case links stripe Mbit/s ratio",
        "frames 2 auto nan",
        "veth 2 auto 190.0",
        "",
    ] {
        assert_eq!(figure_in(other), None, "{other}");
    }
}
