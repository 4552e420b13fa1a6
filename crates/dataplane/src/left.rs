//! What an earlier daemon left on a bond's interfaces, and how much of it the next one can use.

use crate::{
    BOND, MAPS, OBJECT, PROGRAMS,
    attached::{Attached, short},
    error::{Error, Result},
};
use bytemuck::{Pod, Zeroable};
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};
use std::{
    collections::{BTreeSet, HashMap},
    ffi::CStr,
    os::fd::{AsRawFd as _, OwnedFd},
    sync::LazyLock,
};

/// A map of each load of the programs, which they keep: one row that says which build they are of.
const BUILD: &str = "lb_build";
/// What says how the rows of the maps are laid out, and what they mean.
const LAYOUT: [&[u8]; 3] =
    [include_bytes!("bpf/intf.h"), include_bytes!("bpf/maps.bpf.h"), include_bytes!("bpf/stats.bpf.h")];

/// The row of [`BUILD`]. It has this layout in every build.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
struct Build {
    /// The digest of the compiled programs.
    programs: u64,
    /// The digest of what lays out their maps.
    layout: u64,
}

static OWN: LazyLock<Build> =
    LazyLock::new(|| Build { programs: digest(&[OBJECT]), layout: digest(&LAYOUT) });

/// FNV-1a. Nobody gains by a build that passes for another one.
fn digest(parts: &[&[u8]]) -> u64 {
    let bytes = parts.iter().flat_map(|part| part.iter());
    bytes.fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The map for programs of this build.
pub(crate) fn build_map() -> Result<MapHandle> {
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let bytes = size_of::<Build>() as u32;
    let map = MapHandle::create(MapType::Array, Some(BUILD), 4, bytes, 1, &options).map_err(Error::Load)?;
    let failed = |cause| Error::Map { map: BUILD, cause };
    map.update(&0u32.to_ne_bytes(), bytemuck::bytes_of(&*OWN), MapFlags::ANY).map_err(failed)?;
    map.freeze().map_err(failed)?;
    Ok(map)
}

/// A map that an earlier daemon left.
pub(crate) struct Kept {
    pub file: OwnedFd,
    /// The number by which the kernel lists it.
    pub id: u32,
    /// As the kernel keeps it.
    pub name: String,
    /// Bytes of a row, where the map is an array.
    row: Option<usize>,
}

impl Kept {
    pub(crate) fn of(file: OwnedFd) -> Result<Self> {
        let mut info = libbpf_sys::bpf_map_info::default();
        let mut bytes = size_of::<libbpf_sys::bpf_map_info>() as u32;
        // SAFETY: `info` has the size that is given, and outlives the call.
        let answer = unsafe { libbpf_sys::bpf_map_get_info_by_fd(file.as_raw_fd(), &mut info, &mut bytes) };
        if answer != 0 {
            return Err(Error::NotFound(libbpf_rs::Error::from_raw_os_error(-answer)));
        }
        let name = CStr::from_bytes_until_nul(bytemuck::cast_slice(&info.name)).unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let is_array = info.type_ == libbpf_sys::BPF_MAP_TYPE_ARRAY;
        Ok(Self { file, id: info.id, name, row: is_array.then_some(info.value_size as usize) })
    }

    /// The first row of an array.
    pub(crate) fn first_row(&self) -> Option<Vec<u8>> {
        let (key, mut row) = (0u32, vec![0; self.row?]);
        // SAFETY: the key of an array has four bytes, and `row` has as many as a row of this one; both outlive the call.
        let answer = unsafe {
            libbpf_sys::bpf_map_lookup_elem(
                self.file.as_raw_fd(),
                (&raw const key).cast(),
                row.as_mut_ptr().cast(),
            )
        };
        (answer == 0).then_some(row)
    }
}

/// What of the programs of an earlier daemon can be used.
pub(crate) enum Left {
    /// There are none.
    Nothing,
    /// Their maps. The programs as well where all of them are there, of this build.
    Alike(HashMap<String, OwnedFd>, Option<HashMap<&'static str, OwnedFd>>),
    /// Nothing: the maps of some have another layout. No other map of theirs is read.
    Other,
}

/// Looks at the programs of one bond.
pub(crate) fn of(found: &[Attached]) -> Result<Left> {
    let mut maps: HashMap<String, OwnedFd> = HashMap::new();
    let mut builds = Vec::new();
    // Which maps each of them has, of those that all of one load have.
    let mut sets = BTreeSet::new();
    for attached in found {
        let (mut build, mut set) = (None, BTreeSet::new());
        for map in attached.open_maps()? {
            if map.name == BUILD {
                build = build_of(&map);
            }
            if map.name == BUILD || MAPS.iter().any(|own| *short(own) == *map.name) {
                set.insert(map.id);
            }
            // The bond's own interface comes first.
            maps.entry(map.name).or_insert(map.file);
        }
        builds.push(build);
        sets.insert(set);
    }
    if builds.is_empty() {
        return Ok(Left::Nothing);
    }
    // Each program keeps all maps of its bond.
    let is_whole = MAPS.iter().all(|name| maps.contains_key(short(name)));
    if !is_whole || builds.iter().any(|build| build.is_none_or(|build| build.layout != OWN.layout)) {
        return Ok(Left::Other);
    }
    let are_own = sets.len() == 1 && builds.iter().all(|build| *build == Some(*OWN));
    let programs = if are_own { programs(found)? } else { None };
    maps.remove(BUILD);
    Ok(Left::Alike(maps, programs))
}

/// The programs by their names, if all are there.
fn programs(found: &[Attached]) -> Result<Option<HashMap<&'static str, OwnedFd>>> {
    let mut all = HashMap::new();
    for name in PROGRAMS {
        let Some(attached) = found.iter().find(|attached| attached.name == name) else { return Ok(None) };
        all.insert(name, attached.program()?);
    }
    Ok(Some(all))
}

fn build_of(map: &Kept) -> Option<Build> {
    bytemuck::try_pod_read_unaligned(map.first_row()?.get(..size_of::<Build>())?).ok()
}

/// The maps that say of which bond these programs are, by their numbers.
pub(crate) fn bond_maps(found: &[Attached]) -> Result<BTreeSet<u32>> {
    let mut all = BTreeSet::new();
    for attached in found {
        let maps = attached.open_maps()?;
        all.extend(maps.iter().filter(|map| map.name == BOND).map(|map| map.id));
    }
    Ok(all)
}
