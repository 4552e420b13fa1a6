//! A fast path that is there: its device, its programs, and what probes it.

use super::{device::Device, early::KeepsEarly, probe::Prober};
use crate::world::fabric::saved::SavedFabric;
use linkbraid_dataplane::{self as dataplane, HookChoice, PathEnds};
use linkbraid_fabric::{FastPath as Plan, engine::derive_mac};

/// Why a path cannot be had: `CAUSE` of a line.
pub(super) type Off = String;

/// What there is of it.
pub(super) struct On {
    pub plan: Plan,
    /// Its UDP port, one of the plan's.
    pub port: u16,
    pub prober: Prober,
    _early: Option<KeepsEarly>,
    // The device goes first: what comes without the programs would be its own stack's.
    pub device: Device,
    pub programs: dataplane::FastPath,
}

impl On {
    /// Makes the device, and puts the programs in their places.
    pub(super) fn make(
        saved: &SavedFabric,
        (plan, port): (Plan, u16),
        tap: u32,
        hook: HookChoice,
    ) -> Result<Self, Off> {
        let device = Device::make(&saved.name, tap, port, plan.own().is_ipv6())?;
        let mac = derive_mac(saved.number, saved.node);
        let ends = PathEnds { tap, vxlan: device.index(), mac, local: plan.own(), port };
        let prober = Prober::new(&plan, mac)?;
        let programs = dataplane::FastPath::new(&ends, hook).map_err(|error| error.to_string())?;
        device.set_up()?;
        // Without it the path is only longer.
        let early = programs.early().ok().flatten();
        let early = early.and_then(|early| KeepsEarly::start(early, plan.own()));
        Ok(Self { plan, port, prober, _early: early, device, programs })
    }
}
