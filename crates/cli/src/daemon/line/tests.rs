use super::*;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};
use tracing_subscriber::fmt::MakeWriter;

#[derive(Clone, Default)]
struct Kept(Arc<Mutex<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Kept {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

fn lines(journal: bool, says: impl FnOnce()) -> String {
    let kept = Kept::default();
    let log = tracing_subscriber::fmt().with_writer(kept.clone()).event_format(Lines { journal });
    tracing::subscriber::with_default(log.finish(), says);
    let bytes = kept.0.lock().unwrap().clone();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_line_names_the_object_what_happened_and_why() {
    let said = lines(true, || {
        let error = "bond0: cannot read\nit: no such file";
        tracing::error!(bond = "bond0", %error, "guests not read");
        tracing::warn!(%error, hint = "ip link", "not done");
        tracing::warn!(bond = "bond0", member = "eth1", "left alone");
        tracing::info!(bond = "bond0", reason = "added", "bond0: up");
        tracing::info!(frames = 7, "discarded");
        tracing::debug!("not shown");
    });
    assert_eq!(
        said,
        "<3>bond0: guests not read: cannot read it: no such file\n\
         <4>not done: bond0: cannot read it: no such file; hint: ip link\n\
         <4>bond0: eth1: left alone\n<6>bond0: up\n<6>discarded frames=7\n"
    );
}

#[test]
fn outside_the_journal_a_line_begins_with_its_time() {
    let said = lines(false, || tracing::warn!("late"));
    let (time, rest) = said.split_once(' ').unwrap();
    assert!(time.len() > 19 && time.ends_with('Z'), "{said}");
    assert_eq!(rest, " WARN late\n");
}
