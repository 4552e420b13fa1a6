//! Every limit of the state machines by name. Reaching one is counted, never silent.

use std::time::Duration;

/// Most members of a bond, as many as one message can name.
pub const MEMBERS_MAX: usize = linkbraid_wire::HARDWARE_MAX;

/// Most IP addresses of the own host that are advertised: the first one and MORE-ADDRESSES.
pub const ADDRESSES_MAX: usize = 1 + linkbraid_wire::MORE_ADDRESSES_MAX;

/// Most hosts in the ARP+ table.
pub const HOSTS_MAX: usize = 4096;

/// Hosts that may enter the table at once, if they were heard before: a whole LAN that starts together.
pub const JOINS_AT_ONCE: u32 = 1024;

/// The same of hosts that are heard for the first time.
pub const JOINS_AT_ONCE_UNKNOWN: u32 = 256;

/// Hosts that may enter it in a second after those, if they were heard before. Each costs a plan, lanes and probes.
pub const JOIN_RATE: u32 = 256;

/// Those that are heard for the first time. Whoever is on the wire can make up as many as he likes; a true one speaks
/// again within a second.
pub const JOIN_RATE_UNKNOWN: u32 = 16;

/// Mappings of one host that may replace each other at once: links that fail together.
pub const CHANGES_AT_ONCE: u32 = 16;

/// Those in a second after these. Each costs a plan and rows of the data path; what is refused comes again within a second.
pub const CHANGE_RATE: u32 = 4;

/// Announcements of peers that a host hears in a second, if each announces itself as often as this host: with more peers each
/// speaks less often.
pub const ANNOUNCEMENTS_HEARD: usize = 64;

/// It speaks more often again where that makes at most this part of them, in percent.
pub const ANNOUNCEMENTS_FEWER_PERCENT: usize = 75;

/// While a host speaks more often, that part of [`ANNOUNCEMENTS_HEARD`] may be heard, in percent: others may do so, too.
pub const ANNOUNCEMENTS_HURRIED_PERCENT: usize = 400;

/// Who has started speaks each second for so long: all are to have heard of him.
pub const STEADY_AFTER: Duration = Duration::from_secs(5);

/// The same after another host spoke in this one's name, or own members hear others of the own ones: who believed what was is to
/// hear better.
pub const CONTESTED: Duration = Duration::from_secs(10);

/// And for so many times 2^n seconds at least, where each member speaks every 2^n: some of what is said is lost.
pub const CONTESTED_GAP: Duration = Duration::from_secs(3);

/// Who never answered a PROBE is silent after that time at most, however seldom he says that he speaks.
pub const UNPROVEN_SILENT: Duration = Duration::from_secs(60);

/// A host that looks at its table so much later than it wanted to has no time to listen either.
pub const LATE: Duration = Duration::from_millis(250);

/// Hosts that fall silent or are deleted in one look at the table; the next look takes the next ones.
pub const EXPIRED_AT_ONCE: usize = 256;

/// Most addresses of peers' guests that are used; those of guests here come on top of it.
pub const GUEST_ADDRESSES_MAX: usize = 16384;

/// A guest that has sent nothing for so long is not announced: as long as a bridge remembers one.
pub const GUEST_LIVES: Duration = Duration::from_secs(300);

/// A guest here that another host announces is given up if it sends nothing here for so long.
pub const GUEST_CONTEST: Duration = Duration::from_millis(500);

/// After so long the host that a guest has left no longer announces it, or is silent.
pub const GUEST_MOVES: Duration = Duration::from_secs(5);

/// How often switches are reminded where each guest is, whose own frames may all leave under other MACs.
pub const GUEST_REMIND: Duration = Duration::from_secs(60);

/// How often it is looked at which guests are still here...
pub const GUEST_LOOK: Duration = Duration::from_secs(5);

/// ...and while one is announced by two hosts.
pub const GUEST_LOOK_CONTESTED: Duration = Duration::from_millis(200);

/// Most former MACs remembered for one host.
pub const ALIASES_MAX: usize = 16;

/// Most hosts that left and whose delayed messages are still refused; the oldest gives way.
pub const TOMBSTONES_MAX: usize = 4096;

/// Most conflicts remembered at a time.
pub const CONFLICTS_MAX: usize = 64;

/// Most unicast REPLYs between two broadcasts of the own mapping; one more and a CHANGE to all replaces them.
pub const REPLIES_MAX: usize = 16;

/// Most actions that wait to be polled; further events are dropped and counted, frames are not.
pub const ACTIONS_MAX: usize = 8192;

/// Most lanes of a plan.
pub const LANES_MAX: usize = 16;

/// A lane with less than one part in this many of a plan is not worth having.
pub const LANE_SHARE_MIN: u64 = 1000;

/// Shortest probe interval that can be set.
pub const PROBE_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Longest probe interval that can be set, and that a peer can ask for.
pub const PROBE_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// Fewest intervals without proof after which a lane is lost: one lost frame proves nothing.
pub const PROBE_MULTIPLIER_MIN: u8 = 2;

/// Most intervals without proof after which a lane is lost.
pub const PROBE_MULTIPLIER_MAX: u8 = 50;

/// Most answered probes that can be asked of a lane before it carries traffic.
pub const PROBE_ADMIT_MAX: u8 = 20;

/// Longest time that a member whose carrier is back waits.
pub const DELAY_MAX: Duration = Duration::from_secs(60);

/// Longest hold-down.
pub const HOLD_MAX: Duration = Duration::from_secs(3600);

/// What fails of a link within this time after this host has reset it, or of a peer after it was silent as a whole, is no
/// failure of the link: drivers take up to three seconds to negotiate it again.
pub const RESET_SETTLES: Duration = Duration::from_secs(5);

/// PROBEs a host sends in a second at most, all lanes together; more lanes, longer intervals.
pub const PROBE_RATE: u64 = 5000;

/// Of [`PROBE_RATE`], what lanes in use get before others get any, in percent.
pub const PROBE_RATE_IN_USE_PERCENT: u64 = 75;

/// PROBEs a second at most that lanes with light traffic get beyond what idle lanes get: some 100 lanes at the full rate.
pub const PROBE_RATE_LIGHT: u64 = 2000;

/// PROBEs that leave in a second when lanes are tested or repeated in a hurry, and as many REPLYs; what is beyond waits
/// (PROBE) or is dropped (REPLY), counted.
pub const PROBE_RATE_MAX: u64 = 10_000;

/// A peer that answered a PROBE so lately is asked before it is believed to have left or started again.
pub const PROVEN_LATELY: Duration = Duration::from_secs(1);

/// PROBEs, and REPLYs, that may leave at once.
pub const PROBE_BURST: u64 = 1000;

/// A PROBE that is not answered is repeated after this part of the interval, until the lane is lost.
pub const PROBE_REPEAT_DIVISOR: u32 = 4;

/// An answer that comes later than this proves nothing: no queue of a link that is of use holds so much.
pub const ANSWER_MAX: Duration = Duration::from_secs(1);

/// The longest time that answers took is forgotten by this part with each one: to a half in some 45.
pub const ANSWER_DECAY: u32 = 64;

/// Unanswered PROBEs are repeated so often, at most, in the time that answers took: [`NONCES_MAX`] can wait.
pub const ANSWER_REPEATS: u32 = 8;

/// Most lanes that are probed; peers beyond are judged by what is heard.
pub const PROBED_LANES_MAX: usize = 8192;

/// Lanes, at least, of peers that nothing is sent to and that are probed all the same: a failed member of a host that does
/// nothing else is to be found.
pub const IDLE_LANES: usize = 8;

/// Such peers, at least, however many lanes they have: one that has failed is to be told from a member that has.
pub const IDLE_PEERS_MIN: usize = 2;

/// Their lanes that are in no plan are probed so many times more seldom, where other peers are not probed at all. So are all lanes of
/// other peers that nothing is sent to, once they have been tested.
pub const IDLE_SLOWER: u32 = 4;

/// A host that probes that many lanes asks a peer that it meets over one lane only, until something is sent to it.
pub const CROWD_LANES: usize = 256;

/// If no answer comes over that lane for so long, the next one is asked.
pub const CROWD_NEXT_LANE: Duration = Duration::from_secs(10);

/// How often it is looked at which peers those are.
pub const IDLE_LOOK: Duration = Duration::from_secs(1);

/// Who was met, has started again or has other members is probed for so long at least.
pub const IDLE_AFTER_MET: Duration = Duration::from_secs(5);

/// Who was sent something lately, as plans see that, is probed for so long beyond it.
pub const IDLE_AFTER_USE: Duration = Duration::from_secs(50);

/// The same for plain hosts: this part of the interval of a lane that carries data.
pub const PLAIN_REPEAT_DIVISOR: u32 = 2;

/// Most plain hosts that are probed at a time: enough to tell a failed member from a failed host.
pub const PLAIN_PROBED_MAX: usize = 4;

/// Of these, most that are probed because a peer says that it has their MAC.
pub const PLAIN_CLAIMED_MAX: usize = 2;

/// Probes of plain hosts in a second that leave by one member, or go to one plain host: switches that watch ARP shut a port
/// at 15, and hosts ask for reasons of their own, too.
pub const PLAIN_RATE: u64 = 7;

/// Probes beyond those that leave at once while one is not answered or traffic stalls...
pub const PLAIN_URGENT_MAX: u32 = 5;

/// ...and one more after each such time.
pub const PLAIN_URGENT_EACH: Duration = Duration::from_secs(1);

/// A plain host's lane is not lost before so many probes more than the multiplier says were not answered, unless traffic
/// stalls: on wires that lose frames, what may be asked is soon used up.
pub const PLAIN_ASKED_MORE: u8 = 2;

/// Most other lanes of a plain host that are probed at once when one is late: what is left is for that one.
pub const PLAIN_OTHERS_MAX: usize = 2;

/// Interval of a plain host's lane that has not answered for long.
pub const PLAIN_INTERVAL_LATE: Duration = Duration::from_secs(10);

/// Most nonces of a lane that wait to come back; the oldest gives way.
pub const NONCES_MAX: usize = 16;

/// Most other lanes of a peer that are probed at once when one is late.
pub const PROBED_OTHERS_MAX: usize = 4;

/// PROBEs of full length that leave in a second, all lanes together...
pub const LONG_PROBE_RATE: u32 = 100;

/// ...and while lanes are tested.
pub const LONG_PROBE_RATE_TESTED: u32 = 500;

/// A lane that is proven, or whose MTU is another one, is sent one at random within this time.
pub const LONG_PROBE_SOON: Duration = Duration::from_secs(1);

/// One that is not answered within this time, or the detection time of a lane in use where that is longer, is repeated.
pub const LONG_PROBE_REPEAT: Duration = Duration::from_millis(250);

/// A lane that has answered is asked again after this time.
pub const LONG_PROBE_AGAIN: Duration = Duration::from_secs(30);

/// The same while it carries data: what a port no longer passes is missed at once then.
pub const LONG_PROBE_AGAIN_BUSY: Duration = Duration::from_secs(2);

/// The same for one that loses them.
pub const LONG_PROBE_AGAIN_SHORT: Duration = Duration::from_secs(2);

/// So many in a row that are not answered say that a lane is short: on wires that lose frames, that is no accident.
pub const LONG_PROBE_TRIES: u8 = 8;

/// Most plain hosts that are given a member of their own; those beyond go on with the bond's MAC.
pub const ANSWER_HOSTS_MAX: usize = 1024;

/// Most IP addresses that are kept of one plain host.
pub const ANSWER_HOST_IPS_MAX: usize = 16;

/// Corrections (unicast ARP replies and neighbour advertisements) that leave in a second at most; what is beyond waits.
pub const ANSWER_RATE: u64 = 1000;

/// Corrections that may leave at once.
pub const ANSWER_BURST: u64 = 256;

/// A plain host is corrected again after this time: Linux ignores a change within a second of the last one (LOCKTIME in
/// `net/ipv4/arp.c`).
pub const ANSWER_AGAIN: Duration = Duration::from_millis(1200);

/// Shortest time between two ALIVEs of a fabric node that can be set, or that is believed of a peer.
pub const ALIVE_INTERVAL_MIN: Duration = Duration::from_millis(10);

/// Longest time between two ALIVEs that can be set, or that is believed of a peer.
pub const ALIVE_INTERVAL_MAX: Duration = Duration::from_secs(10);

/// Fewest intervals without an ALIVE after which a node is presumed failed: one lost message proves nothing.
pub const ALIVE_MULTIPLIER_MIN: u8 = 2;

/// Most intervals without an ALIVE after which a node is presumed failed.
pub const ALIVE_MULTIPLIER_MAX: u8 = 50;

/// ALIVEs a node sends in a second, all peers together; more peers, longer intervals.
pub const ALIVE_RATE: u32 = 1000;

/// The same over links that are not in use.
pub const IDLE_ALIVE_RATE: u32 = 100;

/// What is sent to a peer may leave sooner by this part of its interval, if something leaves to another one.
pub const SEND_SLACK: u32 = 8;

/// So long a link is in use after a frame to that peer alone.
pub const LINK_IN_USE: Duration = Duration::from_secs(10);

/// Round trips over a link that is not in use are measured once in so many intervals.
pub const IDLE_ASK_INTERVALS: u32 = 4;

/// For so long beyond the detection time a peer may live by messages that echo earlier cookies: the longest round trip that a network is to
/// have. Who repeats messages of a peer that has died keeps it up for no longer.
pub const SIGN_LIVES: Duration = Duration::from_secs(10);

/// From one new cookie of a link that is up to the next one.
pub const COOKIE_LIVES: Duration = Duration::from_secs(1);

/// Round trips a node measures in a second, all peers together.
pub const ASK_RATE: u32 = 100;

/// How long the answer of a measured round trip is waited for before the next question.
pub const ASK_PATIENCE: Duration = Duration::from_secs(1);

/// Epochs of a fabric node's former starts that are remembered, so that none comes back; the oldest gives way.
pub const PAST_EPOCHS_MAX: usize = 8;

/// Most members of other hosts whose frames are known to be new; the one not heard for longest gives way.
pub const AUTH_SENDERS_MAX: usize = 16_384;

/// A member of another host that was not heard for so long has to prove again that its frames are new: somebody may have kept
/// those that were sent meanwhile. Members speak each second.
pub const AUTH_PROOF_LIVES: Duration = Duration::from_secs(2);

/// Questions to members of other hosts that may leave at once, and as many answers: a whole LAN that starts together...
pub const AUTH_AT_ONCE: u32 = 1024;

/// ...and those in a second after these. Only who holds the key, or recorded one who does, causes any.
pub const AUTH_RATE: u32 = 1024;

/// A question that is not answered is sent again after this time, if the member is heard.
pub const AUTH_REPEAT: Duration = Duration::from_millis(300);

/// How long the answer to a question counts.
pub const AUTH_CHALLENGE_LIVES: Duration = Duration::from_secs(1);

/// Most hosts without our key that are reported by name.
pub const AUTH_REFUSED_MAX: usize = 64;

/// How long such a host is reported after it was last heard.
pub const AUTH_REFUSED_LIVES: Duration = Duration::from_secs(10);
