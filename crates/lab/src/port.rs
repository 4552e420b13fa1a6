//! The BPF programs on a switch's ports: loading, settings, counters.

use crate::netns::Netns;
use libbpf_rs::{MapCore, MapFlags, MapHandle, ObjectBuilder, TC_EGRESS, TC_INGRESS, TcHook};
use linkbraid_api::Error;
use serde::{Deserialize, Serialize};
use std::os::fd::AsFd;

/// `port.bpf.c`, compiled.
const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/port.bpf.o"));

/// `struct lab_port`: what one port does to frames. "In" is from the host, "out" is to the host.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PortConf {
    /// Drop all that comes in from the host; the carrier stays.
    pub cut_in: bool,
    /// Drop all that goes out to the host; the carrier stays.
    pub cut_out: bool,
    /// Random loss on the way in, in parts of a million.
    pub loss_in_ppm: u32,
    /// Random loss on the way out, in parts of a million.
    pub loss_out_ppm: u32,
    /// CE set at random on ECN-capable packets on the way out, in parts of a million.
    pub mark_out_ppm: u32,
    pub(crate) cable: u32,
    pub(crate) sticky: bool,
    pub(crate) keep_socket: bool,
}

/// `struct lab_count`: what one port has seen since the lab came up. Frames count the segments of a GSO buffer,
/// bytes include Ethernet headers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortCount {
    /// Frames from the host.
    pub in_frames: u64,
    /// Bytes from the host.
    pub in_bytes: u64,
    /// Frames for the host, before the port's output queue.
    pub out_frames: u64,
    /// Bytes for the host, before the port's output queue.
    pub out_bytes: u64,
    /// Frames dropped because the link is cut.
    pub cut: u64,
    /// Frames dropped at random.
    pub lost: u64,
    /// Frames marked CE.
    pub marked: u64,
    /// Unicast frames that went out here although their receiver was never seen here: the switch flooded them.
    pub flooded: u64,
    /// Frames dropped because the CPU's backlog was full: the machine is too slow for what is asked of it.
    pub backlog: u64,
}

/// The programs of one switch, loaded, and their maps.
#[derive(Debug)]
pub struct Ports {
    ports: MapHandle,
    counts: MapHandle,
}

impl PortConf {
    fn bytes(self) -> Vec<u8> {
        [
            u32::from(self.cut_in),
            u32::from(self.cut_out),
            self.loss_in_ppm,
            self.loss_out_ppm,
            self.mark_out_ppm,
            self.cable,
            u32::from(self.sticky),
            u32::from(self.keep_socket),
        ]
        .iter()
        .flat_map(|word| word.to_ne_bytes())
        .collect()
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let words: Vec<u32> =
            bytes.chunks_exact(4).filter_map(|c| Some(u32::from_ne_bytes(c.try_into().ok()?))).collect();
        let &[cut_in, cut_out, loss_in_ppm, loss_out_ppm, mark_out_ppm, cable, sticky, keep_socket] =
            &words[..]
        else {
            return None;
        };
        Some(Self {
            cut_in: cut_in != 0,
            cut_out: cut_out != 0,
            loss_in_ppm,
            loss_out_ppm,
            mark_out_ppm,
            cable,
            sticky: sticky != 0,
            keep_socket: keep_socket != 0,
        })
    }
}

impl PortCount {
    fn add(&mut self, bytes: &[u8]) {
        let fields = [
            &mut self.in_frames,
            &mut self.in_bytes,
            &mut self.out_frames,
            &mut self.out_bytes,
            &mut self.cut,
            &mut self.lost,
            &mut self.marked,
            &mut self.flooded,
            &mut self.backlog,
        ];
        for (field, chunk) in fields.into_iter().zip(bytes.chunks_exact(8)) {
            *field += chunk.try_into().map_or(0, u64::from_ne_bytes);
        }
    }
}

impl Ports {
    /// Loads the programs and attaches them to ports of one switch, given by interface index.
    pub fn attach(netns: &Netns, ports: &[(i32, PortConf)]) -> Result<Self, Error> {
        let fail = |error: libbpf_rs::Error| {
            Error::new(netns.name(), "cannot attach the switch-port programs", format!("{error:#}"))
                .hint("grep -E 'BPF|SCH_INGRESS' /boot/config-$(uname -r)")
        };
        netns.run(|| Self::attach_here(ports).map_err(fail))?
    }

    fn attach_here(list: &[(i32, PortConf)]) -> Result<Self, libbpf_rs::Error> {
        let object = ObjectBuilder::default().open_memory(OBJECT)?.load()?;
        let map = |name: &str| {
            let found = object.maps().find(|map| map.name() == name);
            found.as_ref().map(MapHandle::try_from).unwrap_or_else(|| Err(not_found()))
        };
        let loaded = Self { ports: map("ports")?, counts: map("counts")? };
        let zero = vec![vec![0_u8; size_of::<PortCount>()]; libbpf_rs::num_possible_cpus()?];
        for (index, conf) in list {
            let key = index.to_ne_bytes();
            loaded.counts.update_percpu(&key, &zero, MapFlags::ANY)?;
            loaded.ports.update(&key, &conf.bytes(), MapFlags::ANY)?;
            // The second attach point lives on the same qdisc; libbpf prints a warning when asked to make it again.
            let mut made = false;
            for (name, point) in [("lab_port_in", TC_INGRESS), ("lab_port_out", TC_EGRESS)] {
                let Some(program) = object.progs().find(|p| p.name() == name) else {
                    return Err(not_found());
                };
                let mut hook = TcHook::new(program.as_fd());
                hook.ifindex(*index).attach_point(point).replace(true).handle(1).priority(1);
                if !std::mem::replace(&mut made, true) {
                    hook.create()?;
                }
                hook.attach()?;
            }
        }
        Ok(loaded)
    }

    /// The numbers of its two maps, to find them again from another process while the lab stands.
    pub fn ids(&self) -> Result<(u32, u32), Error> {
        let id = |map: &MapHandle| map.info().map(|i| i.info.id).map_err(|e| map_error("cannot read", &e));
        Ok((id(&self.ports)?, id(&self.counts)?))
    }

    /// The maps of programs that another process has attached.
    pub fn from_ids((ports, counts): (u32, u32)) -> Result<Self, Error> {
        let map = |id| MapHandle::from_map_id(id).map_err(|e| map_error("cannot open", &e));
        Ok(Self { ports: map(ports)?, counts: map(counts)? })
    }

    /// What a port does now.
    pub fn conf(&self, index: i32) -> Result<PortConf, Error> {
        let bytes = self.ports.lookup(&index.to_ne_bytes(), MapFlags::ANY);
        let bytes = bytes.map_err(|e| map_error("cannot read", &e))?.unwrap_or_default();
        PortConf::parse(&bytes).ok_or_else(|| map_error("cannot read", &not_found()))
    }

    /// Sets what a port does; holds from the next frame on.
    pub fn set(&self, index: i32, conf: PortConf) -> Result<(), Error> {
        let done = self.ports.update(&index.to_ne_bytes(), &conf.bytes(), MapFlags::EXIST);
        done.map_err(|e| map_error("cannot set", &e))
    }

    /// What a port has seen.
    pub fn count(&self, index: i32) -> Result<PortCount, Error> {
        let cpus = self.counts.lookup_percpu(&index.to_ne_bytes(), MapFlags::ANY);
        let cpus = cpus.map_err(|e| map_error("cannot read", &e))?;
        let cpus = cpus.ok_or_else(|| map_error("cannot read", &not_found()))?;
        let mut sum = PortCount::default();
        cpus.iter().for_each(|bytes| sum.add(bytes));
        Ok(sum)
    }
}

fn not_found() -> libbpf_rs::Error {
    libbpf_rs::Error::from(std::io::Error::from(std::io::ErrorKind::NotFound))
}

fn map_error(what: &str, error: &libbpf_rs::Error) -> Error {
    Error::new("lab", format!("{what} a switch port"), format!("{error:#}"))
}
