use super::*;
use std::sync::atomic::AtomicBool;

fn keys(epoch: u64) -> FrameKeys {
    let key = |by: u64| FrameKey {
        id: (epoch + by) as u32,
        secret: Zeroizing::new([(epoch + by) as u8; SECRET_LEN]),
    };
    FrameKeys { epoch, send: Some(key(0)), receive: [Some(key(1)), epoch.is_multiple_of(2).then(|| key(2))] }
}

fn link() -> Link {
    let slot = || Slot { id: AtomicU64::new(0), secret: [const { AtomicU64::new(0) }; WORDS] };
    let [version, epoch, resets, encrypted] = [const { AtomicU64::new(0) }; 4];
    Link { version, epoch, resets, encrypted, send: slot(), receive: [slot(), slot()] }
}

#[test]
fn what_is_said_is_read_once_and_keys_go_with_the_link() {
    let link = link();
    assert!(link.get(0).is_none(), "nothing was said");
    link.set(6, Some(&keys(6)));
    let read = link.get(0).expect("something new");
    assert_eq!((read.epoch, read.resets, read.keys), (6, 0, Some(keys(6))));
    assert!(link.get(read.version).is_none());
    link.set(0, None);
    let read = link.get(read.version).expect("something new");
    assert_eq!((read.epoch, read.resets, read.keys), (0, 1, None));
    let words = link.receive.iter().chain([&link.send]).flat_map(|slot| &slot.secret);
    assert!(words.into_iter().all(|word| word.load(Relaxed) == 0), "no secret stays");
    link.set(7, None);
    let read = link.get(read.version).expect("something new");
    assert_eq!((read.epoch, read.keys), (7, None));
}

#[test]
fn nobody_reads_half_of_a_change() {
    let (link, over) = (link(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let reader = || {
            let (mut known, mut read) = (0, 0);
            while !over.load(Relaxed) || read == 0 {
                let Some(linked) = link.get(known) else { continue };
                (known, read) = (linked.version, read + 1);
                assert_eq!(linked.keys, Some(keys(linked.epoch)));
            }
        };
        let readers = [scope.spawn(reader), scope.spawn(reader)];
        for epoch in 1..100_000 {
            link.set(epoch, Some(&keys(epoch)));
        }
        over.store(true, Relaxed);
        readers.into_iter().for_each(|reader| reader.join().expect("it read whole changes only"));
    });
}
