//! What etcd knows of a fabric, and the directory file that follows from it.

use linkbraid_fabric::{Directory, Join};
use std::{collections::BTreeMap, net::SocketAddr};

/// What the line of further servers begins with; for a directory it is a comment.
const SERVERS: &str = "# etcd ";

/// Who is where.
#[derive(Debug, Clone)]
pub struct Table {
    join: Join,
    own: SocketAddr,
    /// What etcd has of the other nodes, good or not.
    nodes: BTreeMap<u16, String>,
    /// `HOST:PORT` of servers that were learned.
    pub servers: Vec<String>,
}

impl Table {
    /// Nobody but this node.
    pub fn new(join: Join, own: SocketAddr) -> Self {
        Self { join, own, nodes: BTreeMap::new(), servers: Vec::new() }
    }

    /// Takes over what an earlier file has.
    pub fn remember(&mut self, text: &str) {
        for line in text.lines() {
            if let Some(servers) = line.strip_prefix(SERVERS) {
                self.servers = servers.split(' ').map(str::to_owned).collect();
            } else if let Some((node, address)) = line.split_once(' ')
                && let Ok(node) = node.parse()
            {
                self.set(node, Some(address));
            }
        }
    }

    /// This node's own address is another one.
    pub fn moved(&mut self, own: SocketAddr) {
        self.own = own;
    }

    /// This node's own address.
    pub fn own(&self) -> SocketAddr {
        self.own
    }

    /// Forgets all other nodes.
    pub fn clear(&mut self) {
        self.nodes.clear();
    }

    /// What etcd has under a key, without what all keys begin with; none: no longer.
    pub fn set_key(&mut self, key: &str, value: Option<&str>) {
        if let Ok(node) = key.parse::<u16>()
            && node.to_string() == key
        {
            self.set(node, value);
        }
    }

    fn set(&mut self, node: u16, value: Option<&str>) {
        match value {
            _ if node == self.join.node || node >= self.join.nodes => {}
            Some(value) => {
                self.nodes.insert(node, value.to_owned());
            }
            None => {
                self.nodes.remove(&node);
            }
        }
    }

    /// The directory, and what of it is left out because it fits to nothing else: anybody may write to etcd who may.
    pub fn text(&self) -> (String, Option<String>) {
        let mut text = format!("{} {}\n", self.join.node, self.own);
        let mut refused = None;
        for (node, address) in &self.nodes {
            let with = format!("{text}{node} {address}\n");
            match (address.lines().count(), Directory::parse(&with, &self.join)) {
                (1, Ok(_)) => text = with,
                (1, Err(cause)) => {
                    // Which line of it is nobody's concern.
                    let line = cause.strip_prefix("line ").and_then(|rest| rest.split_once(": "));
                    refused = Some(line.map_or(cause.as_str(), |(_, cause)| cause).to_owned());
                }
                _ => refused = Some(format!("node {node} has an address of several lines")),
            }
        }
        if !self.servers.is_empty() {
            text = format!("{SERVERS}{}\n{text}", self.servers.join(" "));
        }
        (text, refused)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOIN: Join = Join { node: 1, nodes: 4, queues: 1 };

    fn table() -> Table {
        Table::new(JOIN, "198.18.0.1:7000".parse().unwrap())
    }

    #[test]
    fn nodes_come_and_go_and_the_file_says_so() {
        let mut table = table();
        table.set_key("0", Some("198.18.0.9:7000"));
        table.set_key("3", Some("198.18.0.3:7000"));
        assert_eq!(table.text(), ("1 198.18.0.1:7000\n0 198.18.0.9:7000\n3 198.18.0.3:7000\n".into(), None));
        table.set_key("0", None);
        table.servers = vec!["a:2379".into(), "b:2379".into()];
        let (text, _) = table.text();
        assert_eq!(text, "# etcd a:2379 b:2379\n1 198.18.0.1:7000\n3 198.18.0.3:7000\n");
        let mut next = Table::new(JOIN, "198.18.0.2:7000".parse().unwrap());
        next.remember(&text);
        assert_eq!(next.text().0, "# etcd a:2379 b:2379\n1 198.18.0.2:7000\n3 198.18.0.3:7000\n");
    }

    #[test]
    fn what_others_write_harms_nobody_else() {
        let mut table = table();
        for (key, value) in [
            ("1", "198.18.0.66:1"),
            ("4", "198.18.0.4:7000"),
            ("x", "198.18.0.4:7000"),
            ("+2", "198.18.0.4:7000"),
            ("0", "198.18.0.1:7000"),
            ("3", "198.18.0.3:7000"),
        ] {
            table.set_key(key, Some(value));
        }
        let (text, refused) = table.text();
        assert_eq!(text, "1 198.18.0.1:7000\n3 198.18.0.3:7000\n");
        assert!(refused.unwrap().contains("use the same ports of 198.18.0.1"));
        for (value, cause) in [
            ("nowhere", "'0 nowhere' is not NODE ADDRESS:PORT"),
            ("[2001:db8::1]:1", "node 0 has [2001:db8::1]:1, node 1 has 198.18.0.1:7000"),
            ("198.18.0.5:1\n2 198.18.0.6:1", "node 0 has an address of several lines"),
            ("198.18.0.5:1 # 1", ""),
        ] {
            table.set_key("0", Some(value));
            let (text, refused) = table.text();
            assert_eq!(text.lines().filter(|line| line.starts_with('2')).count(), 0);
            assert!(refused.unwrap_or_default().contains(cause), "{value}");
            assert!(Directory::parse(&text, &JOIN).is_ok());
        }
    }
}
