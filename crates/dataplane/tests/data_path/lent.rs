//! Loaded data paths, lent to one test after another: the verifier takes longer than all that most tests do.
//!
//! Each is as it was after loading when it is lent: attached nowhere, and all its maps empty, also those that only the programs
//! know. One whose test failed is not lent again.

use libbpf_rs::{
    MapCore as _, MapFlags, MapHandle, MapType, RingBufferBuilder, num_possible_cpus,
    query::{ProgInfoIter, ProgInfoQueryOptions, ProgramInfo},
};
use linkbraid_dataplane::{DataPath, HookChoice, Result};
use nix::sched::{CloneFlags, setns};
use std::{
    collections::BTreeSet,
    fs::File,
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
};

/// Those that nobody has now; as many as were in use at the same time. They are attached nowhere, so they go with the process.
static IDLE: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// A data path for as long as this lives, in the network namespace that it was taken in.
pub struct Lent {
    /// There until the end.
    loaded: Option<Loaded>,
    namespace: File,
}

struct Loaded {
    path: DataPath,
    maps: Vec<MapHandle>,
}

/// The network namespace of this thread.
fn namespace() -> File {
    File::open("/proc/thread-self/ns/net").unwrap()
}

impl Lent {
    /// One that is as if it had been loaded now.
    pub fn take() -> Self {
        let idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let loaded = match idle {
            Some(loaded) => {
                loaded.renew();
                loaded
            }
            None => Loaded::new(),
        };
        Self { loaded: Some(loaded), namespace: namespace() }
    }

    fn loaded(&self) -> &Loaded {
        self.loaded.as_ref().expect("until the end")
    }

    /// All maps of its programs.
    pub fn maps(&self) -> impl Iterator<Item = &MapHandle> {
        self.loaded().maps.iter()
    }

    /// As if it were given back and taken again.
    pub fn renew(&mut self) {
        let loaded = self.loaded.as_mut().expect("until the end");
        loaded.rest(&self.namespace).unwrap();
        loaded.renew();
    }
}

impl Deref for Lent {
    type Target = DataPath;

    fn deref(&self) -> &DataPath {
        &self.loaded().path
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut DataPath {
        &mut self.loaded.as_mut().expect("until the end").path
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let Some(mut loaded) = self.loaded.take() else { return };
        let rested = loaded.rest(&self.namespace);
        if !std::thread::panicking() {
            rested.unwrap();
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(loaded);
        }
    }
}

impl Loaded {
    fn new() -> Self {
        let path = DataPath::load(HookChoice::Auto).expect("the programs load");
        let ids = path.map_ids().unwrap().into_iter();
        let all = ids.map(|id| MapHandle::from_map_id(id).unwrap());
        // What tells of the build stays as it is, and nobody can change it.
        let maps: Vec<MapHandle> = all.filter(|map| map.name() != "lb_build").collect();
        // Else a map that is emptied would not be what it was after loading.
        for map in &maps {
            assert!(is_empty(map), "{:?} is not empty after loading", map.name());
        }
        Self { path, maps }
    }

    /// Attached nowhere. Goes on after an error.
    fn rest(&mut self, namespace: &File) -> Result<()> {
        // What is attached has to be removed where it is.
        let here = self::namespace();
        let entered = setns(namespace, CloneFlags::CLONE_NEWNET);
        let detached = self.path.detach();
        let left = setns(here, CloneFlags::CLONE_NEWNET);
        if !std::thread::panicking() {
            entered.and(left).unwrap();
        }
        detached
    }

    /// As after loading, when it rests.
    fn renew(&self) {
        self.maps.iter().for_each(empty);
    }
}

/// The programs that use any of these maps.
pub fn programs(maps: &BTreeSet<u32>) -> Vec<ProgramInfo> {
    ProgInfoIter::with_query_opts(ProgInfoQueryOptions::default().include_map_ids(true))
        .filter(|program| program.map_ids.iter().any(|id| maps.contains(id)))
        .collect()
}

/// How many of these maps there are.
pub fn maps_left(ids: &BTreeSet<u32>) -> usize {
    ids.iter().filter(|id| MapHandle::from_map_id(**id).is_ok()).count()
}

/// The number by which the kernel knows a map.
pub fn id(map: &MapHandle) -> u32 {
    map.info().unwrap().info.id
}

/// All keys of an array, one after the other.
pub fn places(map: &MapHandle) -> impl Iterator<Item = [u8; 4]> {
    (0..map.max_entries()).map(u32::to_ne_bytes)
}

fn empty(map: &MapHandle) {
    match map.map_type() {
        MapType::Array => {
            let rows = vec![0; (map.max_entries() * map.value_size()) as usize];
            let keys: Vec<u8> = places(map).flatten().collect();
            map.update_batch(&keys, &rows, map.max_entries(), MapFlags::ANY, MapFlags::ANY).unwrap();
        }
        MapType::PercpuArray => {
            let row = vec![vec![0; map.value_size() as usize]; num_possible_cpus().unwrap()];
            places(map).for_each(|key| map.update_percpu(&key, &row, MapFlags::ANY).unwrap());
        }
        MapType::Hash | MapType::LruHash => {
            let keys: Vec<Vec<u8>> = map.keys().collect();
            keys.iter().for_each(|key| map.delete(key).unwrap());
        }
        MapType::RingBuf => {
            read_ring(map);
        }
        MapType::Devmap => places(map).for_each(|key| map.delete(&key).unwrap()),
        // It has what it was loaded with, for as long as that lives.
        MapType::Xskmap => {}
        other => panic!("{:?}: nobody knows how to empty a map of type {other:?}", map.name()),
    }
}

/// Whether a map is as after loading; takes what waits in a ring.
pub fn is_empty(map: &MapHandle) -> bool {
    let is_zero = |row: &[u8]| row.iter().all(|byte| *byte == 0);
    match map.map_type() {
        MapType::Array => places(map).all(|key| is_zero(&map.lookup(&key, MapFlags::ANY).unwrap().unwrap())),
        MapType::PercpuArray => places(map).all(|key| {
            let cpus = map.lookup_percpu(&key, MapFlags::ANY).unwrap().unwrap();
            cpus.iter().all(|row| is_zero(row))
        }),
        MapType::Hash | MapType::LruHash => map.keys().next().is_none(),
        MapType::RingBuf => read_ring(map) == 0,
        MapType::Devmap => places(map).all(|key| map.lookup(&key, MapFlags::ANY).unwrap().is_none()),
        // The kernel shows nobody what is in it.
        MapType::Xskmap => true,
        other => panic!("{:?}: nobody knows when a map of type {other:?} is empty", map.name()),
    }
}

/// Reads all records; how many.
fn read_ring(map: &MapHandle) -> usize {
    let mut builder = RingBufferBuilder::new();
    builder.add(map, |_: &[u8]| 0).unwrap();
    usize::try_from(builder.build().unwrap().consume_raw()).expect("the kernel maps the ring")
}
