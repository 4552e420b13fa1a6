//! One connection to etcd, for as long as it holds.

use crate::{End, LEASE, Node, own, table::Table};
use etcd_client::{
    Client, Compare, CompareOp, Error, EventType, GetOptions, LeaseKeepAliveStream, LeaseKeeper, PutOptions,
    Txn, TxnOp, WatchOptions, WatchResponse,
};
use std::time::Duration;
use tokio::{
    sync::mpsc,
    time::{MissedTickBehavior, interval, timeout},
};

/// How often the lease is renewed...
const RENEW: Duration = Duration::from_secs(3);
/// ...and how long that may take.
const RENEW_MAX: Duration = Duration::from_secs(3);
/// How often it is looked whether the own address is another one.
const LOOK: Duration = Duration::from_secs(1);
/// How long the node's end may take to be told.
const LEAVE_MAX: Duration = Duration::from_secs(1);
/// Servers that are remembered at most, and characters of one.
const SERVERS_MAX: usize = 16;
const SERVER_MAX: usize = 255;
/// Characters that are read of what somebody has put there.
const VALUE_MAX: usize = 100;

/// Why a connection is over.
pub enum Over {
    /// The daemon wants it.
    Ended(End),
    /// It failed: how, in words.
    Failed(String),
}

/// A lease, and what renews it.
struct Lease {
    id: i64,
    keeper: LeaseKeeper,
    answers: LeaseKeepAliveStream,
}

/// Registers the node at this server, and follows what etcd says.
pub async fn hold(node: &mut Node, server: &str, ends: &mut mpsc::Receiver<End>) -> Over {
    let url = node.login.url(server);
    let options = match node.login.options() {
        Ok(options) => options,
        Err(cause) => return Over::Failed(cause),
    };
    let connected = tokio::select! {
        end = ends.recv() => return Over::Ended(end.unwrap_or(End::Gone)),
        connected = Client::connect([url], Some(options)) => connected,
    };
    let held = match connected {
        Ok(mut client) => follow(node, &mut client, ends).await,
        Err(error) => Err(error.into()),
    };
    match held {
        Ok(end) => Over::Ended(end),
        Err(Failure(cause)) => Over::Failed(format!("{server}: {cause}")),
    }
}

/// What failed, in words.
struct Failure(String);

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self(match &error {
            Error::GRpcStatus(status) => status.message().to_owned(),
            _ => error.to_string(),
        })
    }
}

impl From<&str> for Failure {
    fn from(cause: &str) -> Self {
        Self(cause.to_owned())
    }
}

async fn follow(
    node: &mut Node,
    client: &mut Client,
    ends: &mut mpsc::Receiver<End>,
) -> Result<End, Failure> {
    let id = client.lease_grant(LEASE, None).await?.id();
    let (keeper, answers) = client.lease_keep_alive(id).await?;
    let mut lease = Lease { id, keeper, answers };
    register(node, client, id).await?;
    learn(node, client).await;
    let prefix = node.etcd.prefix();
    let all = client.get(prefix.clone(), Some(GetOptions::new().with_prefix())).await?;
    let revision = all.header().map_or(0, etcd_client::ResponseHeader::revision);
    node.table.clear();
    for pair in all.kvs() {
        take(&mut node.table, &prefix, pair.key(), Some(pair.value()));
    }
    node.publish();
    let options = WatchOptions::new().with_prefix().with_start_revision(revision + 1);
    let mut watch = client.watch(prefix.clone(), Some(options)).await?;
    let [mut renew, mut look] = [RENEW, LOOK].map(|every| {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        ticks
    });
    loop {
        tokio::select! {
            end = ends.recv() => {
                let end = end.unwrap_or(End::Gone);
                if let End::Leaves = end {
                    // The lease ends by itself, if need be.
                    let _ = timeout(LEAVE_MAX, client.lease_revoke(lease.id)).await;
                }
                return Ok(end);
            }
            news = watch.message() => {
                let news = news?.ok_or("etcd has ended the watch")?;
                changed(node, &prefix, &news)?;
            }
            _ = renew.tick() => lease.renew().await?,
            _ = look.tick() => {
                if node.etcd.own.is_none()
                    && let Ok(own) = own::towards(&node.etcd.endpoint)
                    && own != node.table.own()
                {
                    node.table.moved(own);
                    node.publish();
                    register(node, client, lease.id).await?;
                }
            }
        }
    }
}

impl Lease {
    async fn renew(&mut self) -> Result<(), Failure> {
        let renewed = async {
            self.keeper.keep_alive().await?;
            self.answers.message().await
        };
        let answer =
            timeout(RENEW_MAX, renewed).await.map_err(|_| Failure::from("etcd does not answer"))??;
        match answer {
            Some(answer) if answer.ttl() > 0 => Ok(()),
            _ => Err("the lease has ended".into()),
        }
    }
}

/// Writes this node's address, unless the number is another node's.
async fn register(node: &Node, client: &mut Client, lease: i64) -> Result<(), Failure> {
    let key = format!("{}{}", node.etcd.prefix(), node.join.node);
    let own = node.table.own().to_string();
    let put = || TxnOp::put(key.clone(), own.clone(), Some(PutOptions::new().with_lease(lease)));
    let get = || TxnOp::get(key.clone(), None);
    // What this node wrote, in this connection or in an earlier one; or nobody.
    let mine = [
        Compare::create_revision(key.clone(), CompareOp::Equal, 0),
        Compare::value(key.clone(), CompareOp::Equal, own.clone()),
        Compare::lease(key.clone(), CompareOp::Equal, lease),
    ];
    for compare in mine {
        if client.txn(Txn::new().when([compare]).and_then([put()])).await?.succeeded() {
            return Ok(());
        }
    }
    let there = client.txn(Txn::new().and_then([get()])).await?;
    let value = there.op_responses().into_iter().find_map(|op| match op {
        etcd_client::TxnOpResponse::Get(get) => get.kvs().first().map(|pair| words(pair.value())),
        _ => None,
    });
    let Some(at) = value else { return Err("its key changes all the time".into()) };
    Err(Failure(format!("node {} of '{}' is {at}", node.join.node, node.etcd.name)))
}

/// Learns where the other servers are. Not everybody may ask.
async fn learn(node: &mut Node, client: &mut Client) {
    let Ok(members) = client.member_list().await else { return };
    let urls = members.members().iter().flat_map(|member| member.client_urls());
    let servers =
        urls.filter_map(|url| url.split_once("://").map(|(_, server)| server.trim_end_matches('/')));
    let good = |server: &&str| {
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
        server.bytes().all(is_host) && server.contains(':') && server.len() <= SERVER_MAX
    };
    let mut servers: Vec<String> = servers.filter(good).take(SERVERS_MAX).map(str::to_owned).collect();
    servers.sort();
    servers.dedup();
    node.table.servers = servers;
}

fn changed(node: &mut Node, prefix: &str, news: &WatchResponse) -> Result<(), Failure> {
    if news.canceled() {
        return Err(Failure(format!("etcd has ended the watch: {}", news.cancel_reason())));
    }
    for event in news.events() {
        if let Some(pair) = event.kv() {
            let value = (event.event_type() == EventType::Put).then(|| pair.value());
            take(&mut node.table, prefix, pair.key(), value);
        }
    }
    if !news.events().is_empty() {
        node.publish();
    }
    Ok(())
}

fn take(table: &mut Table, prefix: &str, key: &[u8], value: Option<&[u8]>) {
    if let Some(key) = std::str::from_utf8(key).ok().and_then(|key| key.strip_prefix(prefix)) {
        let value = value.map(words);
        table.set_key(key, value.as_deref());
    }
}

/// Whatever bytes somebody has put there; one line of them.
fn words(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.chars().take(VALUE_MAX).map(|c| if c.is_control() { '?' } else { c }).collect()
}
