use super::*;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

const JOIN: Join = Join { node: 0, nodes: 4, queues: 1 };

/// A directory file of its own, which goes with this.
struct Place(PathBuf);

impl Place {
    fn new(text: &str) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Relaxed);
        let place =
            Self(std::env::temp_dir().join(format!("linkbraid-live-{}-{number}", std::process::id())));
        place.write(text);
        place
    }

    /// Written in place, as an editor may.
    fn write(&self, text: &str) {
        fs::write(&self.0, text).unwrap();
    }

    /// A new file under the same name.
    fn rename(&self, text: &str) {
        let beside = self.0.with_extension("new");
        fs::write(&beside, text).unwrap();
        fs::rename(&beside, &self.0).unwrap();
    }

    fn live(&self) -> Arc<Live> {
        Live::open(&self.0, &JOIN).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn lines(all: &[(u16, u8)]) -> String {
    all.iter().map(|(node, host)| format!("{node} 198.18.0.{host}:7000\n")).collect()
}

fn at(host: u8) -> Option<SocketAddr> {
    Some(([198, 18, 0, host], 7000).into())
}

fn nobody(_: u16) -> bool {
    false
}

#[test]
fn nodes_come_move_and_go() {
    let place = Place::new(&lines(&[(0, 1), (1, 2)]));
    let live = place.live();
    assert_eq!(live.look(nobody), Look::Same);
    let known = || [1, 2, 3].map(|node| live.directory().address(node));
    assert_eq!(known(), [at(2), None, None]);
    place.rename(&lines(&[(0, 1), (1, 2), (3, 9)]));
    assert_eq!(live.look(nobody), Look::Changed(vec![(3, at(9))]));
    assert_eq!((known(), live.version()), ([at(2), None, at(9)], 1));
    place.rename(&lines(&[(0, 1), (1, 7)]));
    assert_eq!(live.look(nobody), Look::Changed(vec![(1, at(7)), (3, None)]));
    assert_eq!((known(), live.version(), live.look(nobody)), ([at(7), None, None], 2, Look::Same));
}

#[test]
fn a_file_that_is_being_written_is_read_at_the_next_look() {
    let place = Place::new(&lines(&[(0, 1), (1, 2)]));
    let live = place.live();
    place.write("0 198.18.0.1:7000\n1 198.18.0.2:70");
    assert_eq!(live.look(nobody), Look::Same);
    place.write(&lines(&[(0, 1), (1, 2), (2, 3)]));
    assert_eq!(live.look(nobody), Look::Same, "it was written again since");
    assert_eq!(live.look(nobody), Look::Changed(vec![(2, at(3))]));
}

#[test]
fn a_file_that_makes_no_sense_changes_nothing_and_is_reported_once() {
    let place = Place::new(&lines(&[(0, 1), (1, 2)]));
    let live = place.live();
    place.rename("0 198.18.0.1:7000\n1 nowhere\n");
    let Look::Refused(error) = live.look(nobody) else { panic!("it is read") };
    assert_eq!(error.cause, "line 2: '1 nowhere' is not NODE ADDRESS:PORT");
    assert_eq!((live.look(nobody), live.error()), (Look::Same, Some(error)));
    place.rename(&lines(&[(1, 2)]));
    let Look::Refused(error) = live.look(nobody) else { panic!("it is read") };
    assert_eq!(error.cause, "there is no line for node 0");
    fs::remove_file(&place.0).unwrap();
    let Look::Refused(error) = live.look(nobody) else { panic!("it is gone") };
    assert_eq!(error.cause, "it does not exist");
    assert_eq!((live.look(nobody), live.directory().address(1)), (Look::Same, at(2)));
    place.write(&lines(&[(0, 1), (1, 2)]));
    assert_eq!((live.look(nobody), live.error()), (Look::Same, None));
}

#[test]
fn who_is_up_keeps_the_address_until_the_link_is_down_or_somebody_has_it() {
    let place = Place::new(&lines(&[(0, 1), (1, 2), (2, 3)]));
    let live = place.live();
    place.rename(&lines(&[(0, 1)]));
    assert_eq!(live.look(|node| node == 1), Look::Changed(vec![(2, None)]));
    assert_eq!((live.look(|node| node == 1), live.directory().address(1)), (Look::Same, at(2)));
    assert_eq!(live.look(nobody), Look::Changed(vec![(1, None)]));
    place.rename(&lines(&[(0, 1), (1, 2)]));
    assert_eq!(live.look(nobody), Look::Changed(vec![(1, at(2))]));
    place.rename(&lines(&[(0, 1), (3, 2)]));
    assert_eq!(live.look(|_| true), Look::Changed(vec![(1, None), (3, at(2))]));
}

#[test]
fn a_node_that_moves_is_told() {
    let place = Place::new(&lines(&[(0, 1), (1, 2)]));
    let live = place.live();
    place.rename(&lines(&[(0, 8), (1, 2)]));
    assert_eq!(live.look(nobody), Look::Moved(at(8).unwrap()));
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let place = Place::new(&lines(&[(0, 1), (1, 2)]));
    let live = place.live();
    fs::remove_file(&place.0).unwrap();
    nix::unistd::mkfifo(&place.0, nix::sys::stat::Mode::S_IRUSR).unwrap();
    // It may have the number of the file that was there.
    let looks = [live.look(nobody), live.look(nobody)];
    assert!(looks.iter().any(|look| matches!(look, Look::Refused(_))), "{looks:?}");
}

#[test]
fn who_carries_frames_waits_for_no_look() {
    let place = Place::new(&lines(&[(0, 1), (1, 2)]));
    let live = place.live();
    place.rename(&lines(&[(0, 1)]));
    // A session asks for addresses while it is locked, and so the look waits for it.
    let is_up = |_: u16| {
        let (answer, asked) = (std::sync::mpsc::channel(), live.clone());
        std::thread::spawn(move || answer.0.send(asked.directory().address(1)));
        let address = answer.1.recv_timeout(std::time::Duration::from_secs(10));
        assert_eq!(address, Ok(at(2)), "they wait for each other");
        true
    };
    assert_eq!(live.look(is_up), Look::Same);
    assert_eq!(live.directory().address(1), at(2));
}
