//! What is counted of answers.

use crate::counter::counters;

counters! {
    Counters;
    TxArpReply = 0, "tx_arp_reply", "ARP replies sent to correct plain hosts";
    TxAdvertisement = 1, "tx_advertisement", "neighbour advertisements sent to correct plain hosts";
    TxRefused = 2, "tx_refused", "corrections that could not be written because a MAC or address breaks a rule";
    HostAssigned = 3, "host_assigned", "plain hosts that were given a member";
    HostMoved = 4, "host_moved", "plain hosts that were given another member";
    LimitRate = 5, "limit_rate", "times that corrections were put off because the rate limit was reached";
    LimitHosts = 6, "limit_hosts", "plain hosts beyond the limit, left with the bond's MAC";
    LimitActions = 7, "limit_actions", "corrections dropped because too many actions waited";
    LimitMembers = 8, "limit_members", "own members beyond the limit, left out";
    LimitAddresses = 9, "limit_addresses", "own addresses beyond the limit, left out";
}
