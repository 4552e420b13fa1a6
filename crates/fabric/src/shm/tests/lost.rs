use super::{DEADLINE, Name, node, open, take};
use crate::{Join, Loss, Transport};
use std::{
    fs,
    os::unix::fs::{FileExt, PermissionsExt},
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Waits until it says so.
#[track_caller]
fn wait_lost(port: &mut Box<dyn Transport>) -> Loss {
    let begin = Instant::now();
    loop {
        if let Some(loss) = port.lost() {
            return loss;
        }
        assert!(begin.elapsed() < DEADLINE, "not noticed");
        thread::sleep(Duration::from_millis(5));
    }
}

fn file(path: &Path) -> fs::File {
    fs::File::options().read(true).write(true).open(path).expect("opens")
}

#[test]
fn memory_that_is_cut_short_is_lost_and_made_anew_when_all_have_left() {
    for len in [0, 5000] {
        let name = Name::new();
        let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
        a.send(1, b"before", b"").unwrap();
        assert_eq!((take(&mut b).len(), a.lost(), b.lost()), (1, None, None));
        file(&name.0).set_len(len).unwrap();
        // Whoever works finds out at once, and whoever does not soon.
        let _ = a.send(1, &[], &[1; 9000]);
        a.flush();
        assert_eq!(a.lost(), Some(Loss::Cut));
        assert_eq!(wait_lost(&mut b), Loss::Cut);
        assert_eq!(take(&mut b), []);
        let _ = b.arm(&[0]);
        b.disarm();
        b.reset(0);
        drop(b);
        let refused = super::refusal(&name.address(), super::join(1, 2, 1));
        assert!(refused.contains(&format!("the file has {len} bytes")), "{refused}");
        drop(a);
        assert!(name.files().is_empty(), "the last one removes it");
        let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
        a.send(1, b"after", b"").unwrap();
        assert_eq!((take(&mut b).len(), a.lost(), b.lost()), (1, None, None));
    }
}

#[test]
fn memory_that_was_cut_short_and_made_longer_again_is_lost() {
    let name = Name::new();
    let mut a = node(&name.address(), 0, 2);
    let len = fs::metadata(&name.0).unwrap().len();
    file(&name.0).set_len(0).unwrap();
    file(&name.0).set_len(len).unwrap();
    assert_eq!(wait_lost(&mut a), Loss::Overwritten);
}

#[test]
fn memory_that_is_removed_is_lost_and_nodes_meet_in_the_next_one() {
    let name = Name::new();
    let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
    fs::remove_file(&name.0).unwrap();
    assert_eq!((wait_lost(&mut a), wait_lost(&mut b)), (Loss::Removed, Loss::Removed));
    // It still carries: goodbyes arrive.
    a.send(1, b"bye", b"").unwrap();
    assert_eq!(take(&mut b).len(), 1);
    drop(a);
    let mut a = node(&name.address(), 0, 2);
    drop(b);
    assert!(name.0.exists(), "who leaves the old one leaves the new one alone");
    let mut b = node(&name.address(), 1, 2);
    a.send(1, b"after", b"").unwrap();
    assert_eq!((take(&mut b).len(), a.lost(), b.lost()), (1, None, None));
}

#[test]
fn memory_whose_name_another_file_has_is_lost() {
    let name = Name::new();
    let (mut a, other) = (node(&name.address(), 0, 2), name.0.with_extension("other"));
    fs::copy(&name.0, &other).unwrap();
    fs::rename(&other, &name.0).unwrap();
    assert_eq!(wait_lost(&mut a), Loss::Removed);
    drop(a);
    assert!(name.0.exists(), "it is not ours");
}

#[test]
fn a_node_whose_wake_ups_went_astray_is_lost_and_woken_again_after_it() {
    let name = Name::new();
    let (mut a, mut b) = (node(&name.address(), 0, 2), node(&name.address(), 1, 2));
    let fifo = super::super::wake::path(&name.0, 1, 0);
    let wakes = |a: &mut Box<dyn Transport>, b: &mut Box<dyn Transport>| {
        let _ = b.arm(&[]);
        a.send(1, b"x", b"").unwrap();
        a.flush();
        let woken = super::woken(&**b, Duration::ZERO);
        b.disarm();
        take(b);
        woken
    };
    assert!(wakes(&mut a, &mut b));
    fs::remove_file(&fifo).unwrap();
    assert_eq!(wait_lost(&mut b), Loss::Removed);
    assert_eq!(a.lost(), None);
    drop(b);
    let mut b = node(&name.address(), 1, 2);
    assert!(fifo.exists());
    // What the session does when a node starts again.
    a.reset(1);
    assert!(wakes(&mut a, &mut b));
}

#[test]
fn fixed_memory_is_lost_when_another_one_has_its_name() {
    let name = Name::new();
    let make = |path: &Path| {
        let made = fs::File::create_new(path).unwrap();
        made.set_len(4 << 20).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    };
    make(&name.0);
    let address = format!("{},fixed", name.address());
    let mut a = open(&address, Join { node: 0, nodes: 2, queues: 1 }).unwrap().remove(0);
    let other = name.0.with_extension("other");
    fs::rename(&name.0, &other).unwrap();
    // Nobody could make it again, so those who have it go on.
    let begin = Instant::now();
    while begin.elapsed() < 2 * crate::limits::MEMORY_LOOK {
        assert_eq!(a.lost(), None);
    }
    make(&name.0);
    assert_eq!(wait_lost(&mut a), Loss::Removed);
    // Made new for others, as the documents say.
    let mut b = open(&address, Join { node: 1, nodes: 2, queues: 1 }).unwrap().remove(0);
    file(&name.0).write_all_at(&[0; 4096], 0).unwrap();
    assert_eq!(wait_lost(&mut b), Loss::Overwritten);
}
