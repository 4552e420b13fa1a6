//! Filters of IP that keep what a bridge forwards, checked by `nft`.

mod common;

use common::{in_namespace, run, script};
use linkbraid_link::{ForwardChain, forward_drops};

/// The chains that drop what bond0 forwards, as `FAMILY TABLE CHAIN`.
async fn drops() -> Vec<String> {
    let words = |chain: ForwardChain| format!("{} {} {}", chain.family, chain.table, chain.name);
    forward_drops("bond0").await.unwrap().into_iter().map(words).collect()
}

#[test]
fn a_chain_that_drops_what_no_rule_admits_is_found() {
    in_namespace(|_| async {
        assert_eq!(drops().await, [""; 0], "there is no table");
        script(
            "nft add table ip filter
             nft add chain ip filter INPUT { type filter hook input priority 0 ; policy drop ; }
             nft add chain ip filter FORWARD { type filter hook forward priority 0 ; policy accept ; }
             nft add chain ip filter USER
             nft add rule ip filter FORWARD counter jump USER",
        );
        assert_eq!(drops().await, [""; 0], "all is admitted");
        run("nft chain ip filter FORWARD { policy drop ; }");
        assert_eq!(drops().await, ["ip filter FORWARD"]);
        let chain = forward_drops("bond0").await.unwrap().remove(0);
        assert_eq!((chain.has(false), chain.has(true)), (true, false));
        // What is for others, for some packets only, or in chains that forwarded packets do not come to.
        script(
            "nft add rule ip filter FORWARD iifname docker0 oifname != docker0 counter accept
             nft add rule ip filter FORWARD iifname bond0 ip daddr 198.18.0.9 accept
             nft add rule ip filter FORWARD iifname bond0 counter
             nft add rule ip filter USER iifname bond00 accept
             nft add rule ip filter USER iifname bond0 counter drop
             nft add rule ip filter INPUT iifname bond0 accept",
        );
        assert_eq!(drops().await, ["ip filter FORWARD"]);
        run("nft insert rule ip filter USER iifname bond0 oifname bond0 counter accept");
        assert_eq!(drops().await, [""; 0]);
    });
}

#[test]
fn each_family_has_chains_of_its_own() {
    in_namespace(|_| async {
        for family in ["ip", "ip6", "inet"] {
            let chain = "{ type filter hook forward priority 0 ; policy drop ; }";
            script(&format!("nft add table {family} t\nnft add chain {family} t forward {chain}"));
        }
        assert_eq!(drops().await, ["ip t forward", "ip6 t forward", "inet t forward"]);
        run("nft add rule inet t forward accept");
        assert_eq!(drops().await, ["ip t forward", "ip6 t forward"], "that of one table is none of another");
        let chains = forward_drops("bond0").await.unwrap();
        assert_eq!(chains.iter().map(|chain| chain.has(true)).collect::<Vec<_>>(), [false, true]);
        run("nft delete table inet t");
        script(
            "nft add table inet t
             nft add chain inet t forward { type filter hook forward priority 0 ; policy accept ; }
             nft add rule inet t forward ct state established accept
             nft add rule inet t forward tcp dport 22 drop",
        );
        assert_eq!(drops().await.len(), 2, "some packets are dropped");
        run("nft add rule inet t forward counter reject with icmpx type admin-prohibited");
        assert_eq!(drops().await, ["ip t forward", "ip6 t forward", "inet t forward"], "it ends so");
    });
}
