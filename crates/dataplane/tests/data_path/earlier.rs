//! What daemons of other builds left: pinned links, and programs whose maps have another layout.

use crate::lent::programs;
use crate::lifecycle::{ATTACHED, adopted, attached, hooks, interfaces, is_gone, write_tables};
use crate::rig::index;
use libbpf_rs::{MapCore as _, MapFlags, MapHandle, MapType, libbpf_sys};
use linkbraid_dataplane::{DataPath, Hook, HookChoice, row_before, sweep_pins};
use nix::{
    mount::{MsFlags, mount},
    sched::{CloneFlags, unshare},
    sys::statfs::{BPF_FS_MAGIC, statfs},
};
use std::{
    ffi::CString,
    fs,
    os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd},
    path::{Path, PathBuf},
    ptr::null,
};

/// Opens what a call of libbpf returned.
#[track_caller]
fn open(file: i32) -> OwnedFd {
    assert!(file >= 0, "{}", std::io::Error::from_raw_os_error(-file));
    // SAFETY: the call just opened it, and nobody else has it.
    unsafe { OwnedFd::from_raw_fd(file) }
}

/// Has a BPF file system where the machine has one, or where this thread alone sees it.
fn mount_bpf() {
    const PLACE: &str = "/sys/fs/bpf";
    if statfs(PLACE).unwrap().filesystem_type() == BPF_FS_MAGIC {
        return;
    }
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    let nothing = None::<&str>;
    mount(nothing, "/", nothing, MsFlags::MS_REC | MsFlags::MS_PRIVATE, nothing).unwrap();
    mount(Some("bpf"), PLACE, Some("bpf"), MsFlags::empty(), nothing).unwrap();
}

/// Removes a folder of a BPF file system at the end of a test, with what is in it.
struct Pins(PathBuf);

impl Pins {
    /// As of a bond in a network namespace that no other test has.
    fn new(name: &str) -> Self {
        mount_bpf();
        let namespace = format!("/sys/fs/bpf/linkbraid/test-{}-{name}", std::process::id());
        fs::create_dir_all(Path::new(&namespace).join("bond")).expect("a BPF file system is mounted");
        Self(namespace.into())
    }

    fn namespace(&self) -> PathBuf {
        self.0.file_name().unwrap().into()
    }

    fn pin(&self, file: &OwnedFd, name: &str) {
        let path = CString::new(self.0.join("bond").join(name).to_str().unwrap()).unwrap();
        // SAFETY: the number of an open file, and a path that outlives the call.
        assert_eq!(unsafe { libbpf_sys::bpf_obj_pin(file.as_raw_fd(), path.as_ptr()) }, 0);
    }
}

impl Drop for Pins {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
        let _ = fs::remove_dir("/sys/fs/bpf/linkbraid");
    }
}

/// Puts a data path on its interfaces as earlier builds did: held by links, which are pinned with the maps. The links alone.
fn by_links(path: DataPath, pins: &Pins) {
    let ids = path.map_ids().unwrap();
    let places = [
        ("lb_egress", "bond", "egress", libbpf_sys::BPF_TCX_EGRESS),
        ("lb_ingress", "member0", "ingress", libbpf_sys::BPF_TCX_INGRESS),
        ("lb_copies", "member0", "egress", libbpf_sys::BPF_TCX_EGRESS),
    ];
    let all = programs(&ids);
    for (program, interface, side, point) in places {
        let id = all.iter().find(|info| *info.name == *program).unwrap().id;
        // SAFETY: it takes a number.
        let program = open(unsafe { libbpf_sys::bpf_prog_get_fd_by_id(id) });
        let to = index(interface).cast_signed();
        // SAFETY: numbers of an open file and of an interface, and no options.
        unsafe {
            assert_eq!(libbpf_sys::bpf_prog_detach_opts(program.as_raw_fd(), to, point, null()), 0);
            let link = open(libbpf_sys::bpf_link_create(program.as_raw_fd(), to, point, null()));
            pins.pin(&link, &format!("{side}_{to}"));
        }
    }
    for id in ids {
        let map = MapHandle::from_map_id(id).unwrap();
        pins.pin(&map.as_fd().try_clone_to_owned().unwrap(), &map.name().to_string_lossy());
    }
}

#[test]
fn pinned_links_are_taken_over_and_go_with_the_bond() {
    if !hooks().contains(&Hook::Tcx) {
        return;
    }
    interfaces();
    let pins = Pins::new("taken");
    let first = attached(Hook::Tcx);
    write_tables(&first);
    let ids = first.map_ids().unwrap();
    by_links(first, &pins);
    assert_eq!(programs(&ids).len(), ATTACHED);
    // Twice: the second daemon leaves it as it is.
    for _ in 0..2 {
        let next = adopted(Hook::Tcx);
        assert_eq!(next.members().unwrap().len(), 1);
        assert_eq!(next.hook(), Some(Hook::Tcx));
        sweep_pins(&pins.namespace());
        assert!(pins.0.exists(), "the links hold the programs");
    }
    let last = adopted(Hook::Tcx);
    last.unload().unwrap();
    sweep_pins(&pins.namespace());
    assert!(!pins.0.exists());
    is_gone(&ids);
}

#[test]
fn pins_of_interfaces_that_are_gone_are_removed() {
    if !hooks().contains(&Hook::Tcx) {
        return;
    }
    interfaces();
    let pins = Pins::new("gone");
    let first = attached(Hook::Tcx);
    let ids = first.map_ids().unwrap();
    by_links(first, &pins);
    for interface in ["bond", "member0"] {
        sweep_pins(Path::new("4026530000"));
        assert!(pins.0.exists(), "one of the links holds a program");
        crate::rig::ip(&format!("link del {interface}"));
    }
    // What marks a filter of clsact is a folder.
    fs::create_dir(pins.0.join("bond/ingress_7_filter")).unwrap();
    sweep_pins(Path::new("4026530000"));
    assert!(!pins.0.exists());
    is_gone(&ids);
}

#[test]
fn pins_without_links_go_in_the_own_namespace_only() {
    let pins = Pins::new("maps");
    sweep_pins(Path::new("4026530000"));
    assert!(pins.0.exists(), "filters of another one may go with these maps");
    sweep_pins(&pins.namespace());
    assert!(!pins.0.exists());
}

#[test]
fn programs_of_somebody_else_that_come_first_are_found() {
    // On the other hook, priorities say who comes first.
    if !hooks().contains(&Hook::Tcx) {
        return;
    }
    interfaces();
    let member = index("member0");
    strange("somebody", member, libbpf_sys::BPF_TCX_INGRESS, 0);
    let path = attached(Hook::Tcx);
    assert_eq!(row_before(member).unwrap(), ["ingress"]);
    strange("somebody", member, libbpf_sys::BPF_TCX_EGRESS, 0);
    assert_eq!(row_before(member).unwrap(), ["ingress"], "what comes after ours takes nothing from it");
    path.unload().unwrap();
    assert_eq!(row_before(member).unwrap(), [""; 0]);
}

/// Puts a program on an interface that another build may have left there: called as ours, with a map called as ours, which says only
/// which bond it is of; its number.
fn strange(name: &str, to: u32, point: libbpf_sys::bpf_attach_type, bond: u32) -> u32 {
    // Return 0.
    let code: [libbpf_sys::bpf_insn; 2] =
        [0xb7, 0x95].map(|code| libbpf_sys::bpf_insn { code, ..Default::default() });
    let (name, license) = (CString::new(name).unwrap(), CString::new("GPL").unwrap());
    // SAFETY: two instructions, and names that outlive the call.
    let program = open(unsafe {
        libbpf_sys::bpf_prog_load(
            libbpf_sys::BPF_PROG_TYPE_SCHED_CLS,
            name.as_ptr(),
            license.as_ptr(),
            code.as_ptr(),
            2,
            std::ptr::null_mut(),
        )
    });
    let options = libbpf_sys::bpf_map_create_opts {
        sz: size_of::<libbpf_sys::bpf_map_create_opts>() as libbpf_sys::size_t,
        ..Default::default()
    };
    let map = MapHandle::create(MapType::Array, Some("lb_bond"), 4, 8, 1, &options).unwrap();
    map.update(&[0; 4], &[bond.to_ne_bytes(), [0; 4]].concat(), MapFlags::ANY).unwrap();
    // SAFETY: numbers of open files and of an interface, and no options.
    unsafe {
        let map = map.as_fd().as_raw_fd();
        assert_eq!(libbpf_sys::bpf_prog_bind_map(program.as_raw_fd(), map, null()), 0);
        let to = to.cast_signed();
        assert_eq!(libbpf_sys::bpf_prog_attach_opts(program.as_raw_fd(), to, point, null()), 0);
    }
    row(to, point)[0]
}

/// The numbers of the programs on one side of an interface.
fn row(to: u32, point: libbpf_sys::bpf_attach_type) -> Vec<u32> {
    let mut programs = [0; 8];
    let mut query = libbpf_sys::bpf_prog_query_opts {
        sz: size_of::<libbpf_sys::bpf_prog_query_opts>() as libbpf_sys::size_t,
        prog_ids: programs.as_mut_ptr(),
        ..Default::default()
    };
    query.__bindgen_anon_1.count = programs.len() as u32;
    // SAFETY: the array has room for the number that is given; the union's other name for the field is of the same type.
    let count = unsafe {
        assert_eq!(libbpf_sys::bpf_prog_query_opts(to.cast_signed(), point, &mut query), 0);
        query.__bindgen_anon_1.count
    };
    programs[..count as usize].to_vec()
}

const EGRESS: libbpf_sys::bpf_attach_type = libbpf_sys::BPF_TCX_EGRESS;
const INGRESS: libbpf_sys::bpf_attach_type = libbpf_sys::BPF_TCX_INGRESS;

#[test]
fn programs_with_maps_of_another_layout_go_on_until_their_places_are_taken() {
    if !hooks().contains(&Hook::Tcx) {
        return;
    }
    interfaces();
    let (bond, member) = (index("bond"), index("member0"));
    let old = [strange("lb_egress", bond, EGRESS, bond), strange("lb_ingress", member, INGRESS, bond)];
    let now = || [row(bond, EGRESS), row(member, INGRESS)];
    let mut path = adopted(Hook::Tcx);
    assert!(path.waits() && path.hook().is_none());
    assert!(path.members().unwrap().is_empty(), "nothing of theirs is read");
    write_tables(&path);
    assert_eq!(now(), old.map(|id| vec![id]), "they are where they were, alone");
    path.take_over().unwrap();
    assert!(!path.waits() && path.hook() == Some(Hook::Tcx));
    for (row, old) in now().into_iter().zip(old) {
        assert!(row.len() == 1 && row[0] != old, "one in place of another: {row:?} of {old}");
    }
    // Those of another bond are nobody's business.
    assert!(!DataPath::adopt(bond + 100, &[bond, member], HookChoice::Auto).unwrap().waits());
    path.unload().unwrap();
    assert!(now().iter().all(Vec::is_empty));
}

#[test]
fn programs_of_another_layout_are_put_back_where_their_places_cannot_all_be_taken() {
    if !hooks().contains(&Hook::Tcx) {
        return;
    }
    interfaces();
    let (bond, member) = (index("bond"), index("member0"));
    let old = [strange("lb_egress", bond, EGRESS, bond), strange("lb_ingress", member, INGRESS, bond)];
    let mut path = adopted(Hook::Tcx);
    // The last one: there is no such interface.
    path.attach_member(member + 1000).unwrap();
    assert!(path.take_over().is_err());
    assert_eq!([row(bond, EGRESS), row(member, INGRESS)], old.map(|id| vec![id]));
    assert!(row(member, EGRESS).is_empty(), "there was none before");
    assert!(path.waits());
    // It can be tried again without that one; a member that is gone for the bond loses theirs.
    path.detach_member(member + 1000).unwrap();
    path.detach_member(member).unwrap();
    assert!(row(member, INGRESS).is_empty());
    path.take_over().unwrap();
    assert_ne!(row(bond, EGRESS), [old[0]]);
    path.unload().unwrap();
}
