//! Members, and lanes alone.

use super::{Case, Code, Direction, LaneTest, Side, mbit};

/// What `check` finds of an interface that makes its link slow.
const SLOWS: [&str; 4] = ["duplex", "bus", "speed_mismatch", "eee"];
/// A lane is slow below this part of the middle one.
const SLOW: f64 = 0.75;
/// What others send counts from this part of a lane's rate on.
const COMPETING: f64 = 0.1;

impl Case<'_> {
    /// What needs no measurement.
    pub(super) fn members(&mut self) {
        let usual = self.usual;
        for (host, side) in self.hosts() {
            for name in &side.absent {
                let text = format!("'{name}' of {host} is not there");
                self.add(Code::MemberDown, usual, text, "ip -br link".to_owned());
            }
            for member in &side.members {
                let name = &member.name;
                if !member.live {
                    let text = format!("'{name}' of {host} carries no traffic: {}", member.reason);
                    self.add(Code::MemberDown, usual, text, format!("linkbraid check {name}"));
                } else if let Some(class) = &member.class {
                    let text = format!("'{name}' of {host} is reserved for the class '{class}'");
                    self.add(
                        Code::Reserved,
                        usual,
                        text,
                        format!("linkbraid class set {} {class} --borrow idle", side.bond),
                    );
                }
            }
        }
        let [own, other] =
            [&self.all.own, &self.all.other].map(|side| side.members.len() + side.absent.len());
        if own != other {
            let fewer = if own < other { "this host" } else { "the other host" };
            let text = format!(
                "{fewer} has {} members and its peer {}: no more links than that carry traffic between them",
                own.min(other),
                own.max(other)
            );
            self.add(Code::FewerMembers, usual * own.abs_diff(other) as f64, text, None);
        }
        let live = |side: &Side| side.default_members().filter(|member| member.live).count();
        let tested = self.all.lanes.len();
        let most = live(&self.all.own).min(live(&self.all.other));
        if tested < most {
            let alone: Vec<_> = self
                .all
                .own
                .default_members()
                .filter(|member| member.live && !self.all.lanes.iter().any(|lane| lane.member == member.name))
                .map(|member| format!("'{}'", member.name))
                .collect();
            let text = format!(
                "no lane leads from {} to a member of the other host: are they on the same switch?",
                alone.join(" and ")
            );
            self.add(
                Code::NoLane,
                usual * (most - tested) as f64,
                text,
                format!("linkbraid lanes {}", self.all.own.bond),
            );
        }
    }

    /// What lanes carry alone.
    pub(super) fn lanes(&mut self) {
        let (usual, payload) = (self.usual, self.payload);
        for lane in &self.all.lanes {
            let is_dead = lane.heard.iter().all(|heard| heard.frames == 0);
            if is_dead && !self.is_up(lane) {
                let (one, other) = (&lane.member, &lane.peer_member);
                let text = format!(
                    "nothing arrives either way between '{one}' and the other host's '{other}': are they on the same switch?"
                );
                self.add(Code::NoLane, usual, text, format!("linkbraid lanes {}", self.all.own.bond));
                continue;
            }
            for way in Direction::BOTH {
                let ends = match way {
                    Direction::Up => {
                        format!("from '{}' to the other host's '{}'", lane.member, lane.peer_member)
                    }
                    Direction::Down => {
                        format!("from the other host's '{}' to '{}'", lane.peer_member, lane.member)
                    }
                };
                let rate = lane.mbit(way) * payload;
                if lane.heard[way as usize].frames == 0 {
                    let up = self.is_up(lane);
                    let (code, what) = match up {
                        true => (Code::Short, "nothing of full length arrives, though short frames do"),
                        false => (Code::Silent, "nothing arrives"),
                    };
                    let hint = if up {
                        format!("linkbraid check {}", lane.member)
                    } else {
                        format!("linkbraid lanes {}", self.all.own.bond)
                    };
                    self.add(code, usual, format!("{ends}: {what}"), hint);
                } else if self.is_slow(lane, way) {
                    self.slow(lane, &ends, rate);
                }
            }
        }
    }

    /// Whether it carries less than others do.
    pub(super) fn is_slow(&self, lane: &LaneTest, way: Direction) -> bool {
        lane.mbit(way) * self.payload < self.usual * SLOW && !lane.is_at_least(way)
    }

    /// Whether probes are answered over it.
    fn is_up(&self, lane: &LaneTest) -> bool {
        self.all.own.lanes.iter().any(|known| {
            known.member == lane.member
                && Some(&known.peer_mac) == self.mac(&lane.peer_member)
                && known.state == "up"
        })
    }

    fn mac(&self, peer_member: &str) -> Option<&String> {
        self.all.other.members.iter().find(|member| member.name == peer_member).map(|member| &member.mac)
    }

    fn slow(&mut self, lane: &LaneTest, ends: &str, rate: f64) {
        let of = |watched: &[(String, f64)], name: &str| {
            watched.iter().find(|(known, _)| known == name).map_or(0.0, |(_, rate)| *rate)
        };
        let before =
            [of(&self.all.watched.own, &lane.member), of(&self.all.watched.other, &lane.peer_member)];
        let usual = self.usual;
        let (missing, others) = (usual - rate, before[0].max(before[1]));
        if others > usual * COMPETING && others > missing / 2.0 {
            let (name, host) = if before[0] >= before[1] {
                (&lane.member, "")
            } else {
                (&lane.peer_member, " of the other host")
            };
            let text = format!(
                "'{name}'{host} carries {} of other traffic, and {} is left {ends}",
                mbit(others),
                mbit(rate)
            );
            return self.add(Code::Competing, missing, text, format!("linkbraid top {}", self.all.own.bond));
        }
        let head = format!("{ends}: {}, where others carry {}", mbit(rate), mbit(usual));
        let ends =
            [(&self.all.own, &lane.member, ""), (&self.all.other, &lane.peer_member, " of the other host")];
        let known = ends.into_iter().find_map(|(side, name, host)| {
            let found =
                |slows: &str| side.findings.iter().find(|found| found.object == *name && found.name == slows);
            let finding = SLOWS.iter().find_map(|slows| found(slows))?;
            Some((format!("{head}: '{name}'{host}: {}", finding.text), finding.hint.clone()))
        });
        let (text, hint) = known.unwrap_or_else(|| {
            let text = format!("{head}: look at the cable, the port and the switch");
            (text, Some(format!("ethtool {}", lane.member)))
        });
        self.add(Code::SlowLink, missing, text, hint);
    }
}
