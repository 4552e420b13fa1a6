use super::*;

#[test]
fn scripts_are_found_from_inside_the_tree() {
    for script in [super::super::peers::SCRIPT, super::super::tipc::SCRIPT] {
        let found = find(Path::new(env!("CARGO_MANIFEST_DIR")), script).expect("this is in the tree");
        assert!(found.ends_with(script) && find(Path::new("/"), script).is_none());
    }
}
