//! A bond's programs where they are: what the kernel lists on an interface, whoever put it there.
//!
//! Nothing else remembers them. A program keeps its maps, so a daemon finds both again in any mount namespace.

use crate::{
    BOND, COPIES, EGRESS, INGRESS, MARK,
    by_id::{self, Object},
    error::{Error, Result},
    hook::{self, HookChoice, Place, SIDES, Side, clsact, exists, quietly, tcx},
    intf::lb_config,
    left::Kept,
};
use libbpf_rs::libbpf_sys;
use std::{
    ffi::CStr,
    io,
    mem::offset_of,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
};

/// Characters that the kernel keeps of a name (`BPF_OBJ_NAME_LEN` less the end).
const NAME_BYTES: usize = 15;
/// More maps than a program can have.
pub const MAPS_MAX: usize = 128;

/// One program on one interface.
pub(crate) struct Attached {
    ifindex: u32,
    side: Side,
    pub place: Place,
    program: OwnedFd,
    pub id: u32,
    pub name: String,
    /// The numbers of its maps.
    pub maps: Vec<u32>,
}

/// What the kernel says of a program.
pub(crate) struct Info {
    pub id: u32,
    /// As the kernel keeps it.
    pub name: String,
    /// The numbers of its maps.
    pub maps: Vec<u32>,
}

/// What a bond's programs on that side are called. One at most is on an interface.
const fn names_of(side: Side) -> &'static [&'static str] {
    match side {
        Side::Ingress => &[INGRESS],
        Side::Egress => &[EGRESS, MARK, COPIES],
    }
}

/// The name of a map as the kernel keeps it.
pub(crate) fn short(name: &str) -> &str {
    name.get(..NAME_BYTES).unwrap_or(name)
}

/// A bond's programs on one side of an interface; none where there is no such interface.
pub(crate) fn on(ifindex: u32, side: Side) -> Result<Vec<Attached>> {
    let mut places: Vec<(Place, u32)> = Vec::new();
    for (program, link) in tcx::row(ifindex, side)? {
        places.push((if link == 0 { Place::Row } else { Place::Link(link) }, program));
    }
    for handle in clsact::HANDLES {
        // That there is none is no news.
        let program = quietly(|| clsact::program(handle, ifindex, side))?;
        places.extend(program.map(|program| (Place::Filter(handle), program)));
    }
    let mut all = Vec::new();
    for (place, id) in places {
        // One that is gone by now is on no interface.
        let Some(program) = by_id::find(Object::Program(id))?.pop() else { continue };
        let Info { id, name, maps } = Info::of(&program)?;
        if names_of(side).contains(&name.as_str()) {
            all.push(Attached { ifindex, side, place, program, id, name, maps });
        }
    }
    Ok(all)
}

/// The sides of an interface, `ingress` and `egress`, where a program of somebody else comes before a bond's on the tcx hook.
///
/// # Errors
/// The kernel refuses.
pub fn row_before(ifindex: u32) -> Result<Vec<&'static str>> {
    let mut sides = Vec::new();
    for (name, side) in [("ingress", Side::Ingress), ("egress", Side::Egress)] {
        let own: Vec<u32> = on(ifindex, side)?.iter().map(|attached| attached.id).collect();
        let row = tcx::row(ifindex, side)?;
        if row.iter().position(|(program, _)| own.contains(program)).is_some_and(|at| at > 0) {
            sides.push(name);
        }
    }
    Ok(sides)
}

impl Info {
    pub(crate) fn of(program: &impl AsFd) -> Result<Self> {
        Self::read(program).map_err(|cause| Error::NotFound(cause.into()))
    }

    pub(crate) fn read(program: &impl AsFd) -> io::Result<Self> {
        let mut maps = vec![0; MAPS_MAX];
        let mut info = libbpf_sys::bpf_prog_info {
            nr_map_ids: MAPS_MAX as u32,
            map_ids: maps.as_mut_ptr() as u64,
            ..Default::default()
        };
        let mut bytes = size_of::<libbpf_sys::bpf_prog_info>() as u32;
        // SAFETY: `info` has the size that is given, and `maps` has room for the number of entries that it names.
        let answer = unsafe {
            libbpf_sys::bpf_prog_get_info_by_fd(program.as_fd().as_raw_fd(), &mut info, &mut bytes)
        };
        if answer != 0 {
            return Err(io::Error::from_raw_os_error(-answer));
        }
        maps.truncate(info.nr_map_ids as usize);
        let name = bytemuck::cast_slice(&info.name);
        let name = CStr::from_bytes_until_nul(name).unwrap_or_default();
        Ok(Self { id: info.id, name: name.to_string_lossy().into_owned(), maps })
    }
}

impl Attached {
    /// Puts another program into its place.
    pub(crate) fn replace(&self, program: BorrowedFd<'_>) -> Result<()> {
        match self.place {
            Place::Row => tcx::replace(self.program.as_fd(), program, self.ifindex, self.side),
            Place::Link(link) => tcx::update_link(link, program, self.ifindex),
            Place::Filter(handle) => clsact::replace(handle, program, self.ifindex, self.side),
        }
    }

    /// Puts it back into its place, where another one may be by now.
    pub(crate) fn put_back(&self) -> Result<()> {
        let choice = HookChoice::Only(self.place.hook());
        hook::attach(self.program.as_fd(), self.ifindex, self.side, choice).map(|_| ())
    }

    pub(crate) fn is_at(&self, ifindex: u32, side: Side) -> bool {
        (self.ifindex, self.side) == (ifindex, side)
    }

    /// Its file.
    pub(crate) fn program(&self) -> Result<OwnedFd> {
        self.program.try_clone().map_err(|cause| Error::NotFound(cause.into()))
    }

    /// Takes it off. One that is gone is no error.
    pub(crate) fn remove(&self) -> Result<()> {
        self.place.remove(self.program.as_fd(), self.ifindex, self.side)
    }

    /// As [`bond_of`].
    fn bond(&self) -> Result<Option<u32>> {
        Ok(bond_of(&self.open_maps()?))
    }

    pub(crate) fn open_maps(&self) -> Result<Vec<Kept>> {
        by_id::find(Object::Maps(self.id))?.into_iter().map(Kept::of).collect()
    }
}

/// The index of the bond that these maps are of; 0 until its row is written. It is the first field of that row in every build.
fn bond_of(maps: &[Kept]) -> Option<u32> {
    let row = maps.iter().find(|map| map.name == BOND)?.first_row()?;
    const { assert!(offset_of!(lb_config, bond_ifindex) == 0) };
    let index = row.get(..size_of::<u32>())?;
    Some(bytemuck::pod_read_unaligned(index))
}

/// The programs that are on any of these interfaces for the bond of that index. The bond's own interface comes first.
pub(crate) fn of_bond(bond: u32, interfaces: &[u32]) -> Result<Vec<Attached>> {
    let mut all = Vec::new();
    for attached in on_all(interfaces)? {
        if attached.bond()? == Some(bond) {
            all.push(attached);
        }
    }
    Ok(all)
}

/// The programs of any bonds that are on these interfaces.
pub(crate) fn on_all(interfaces: &[u32]) -> Result<Vec<Attached>> {
    let mut all = Vec::new();
    for (ifindex, side) in places(interfaces) {
        all.extend(on(ifindex, side)?);
    }
    Ok(all)
}

/// Takes a bond's programs off interfaces, where its data path is not loaded (left by a daemon that was killed half way).
/// Goes on after an error and returns the first.
///
/// # Errors
/// The kernel refuses.
pub fn take_off(bond: u32, interfaces: &[u32]) -> Result<()> {
    // The row of a bond that was killed half way may not be written.
    remove_where(interfaces, |attached| Ok(matches!(attached.bond()?, Some(of) if of == 0 || of == bond)))
}

/// The same for programs of bonds whose interfaces are gone.
///
/// # Errors
/// The same.
pub fn take_off_strays(interfaces: &[u32]) -> Result<()> {
    remove_where(interfaces, |attached| Ok(matches!(attached.bond()?, Some(of) if of != 0 && !exists(of))))
}

/// Takes off the programs that are meant. Goes on after an error and returns the first.
pub(crate) fn remove_where(interfaces: &[u32], is_meant: impl Fn(&Attached) -> Result<bool>) -> Result<()> {
    let remove = |(ifindex, side)| {
        on(ifindex, side)?
            .iter()
            .try_for_each(|attached| if is_meant(attached)? { attached.remove() } else { Ok(()) })
    };
    places(interfaces).map(remove).fold(Ok(()), Result::and)
}

fn places(interfaces: &[u32]) -> impl Iterator<Item = (u32, Side)> {
    interfaces.iter().flat_map(|ifindex| SIDES.map(|side| (*ifindex, side)))
}
