//! One QUIC connection with one stream, by quinn as it comes: buffers of several packets (UDP GSO), and a packet is taken for
//! lost when one three numbers above it has been acknowledged.

use super::{CONNECT_LIMIT, LOOK, Progress, Task, failed};
use linkbraid_api::Error;
use linkbraid_lab::Host;
use linkbraid_lab::iperf::Cc;
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig};
use quinn::rustls::RootCertStore;
use quinn::rustls::pki_types::PrivatePkcs8KeyDer;
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What the server's certificate is for; nobody looks it up.
const NAME: &str = "bench";
/// Bytes given to QUIC at once.
const PIECE: usize = 128 << 10;

/// A connection that sends as much as QUIC lets through.
#[derive(Debug)]
pub struct QuicFlow {
    zero: Instant,
    sender: Task<io::Result<Packets>>,
    receiver: Task<io::Result<Progress>>,
}

#[derive(Debug)]
pub struct QuicRecord {
    /// Payload bytes at the receiver, in order.
    pub progress: Progress,
    pub packets: Packets,
}

/// Packets of the sender, the start included.
#[derive(Debug, Clone, Copy)]
pub struct Packets {
    pub sent: u64,
    /// Of these, taken for lost.
    pub lost: u64,
}

impl QuicFlow {
    /// Starts to send from one host to another.
    pub fn start(from: Host<'_>, to: Host<'_>, cc: Cc) -> Result<Self, Error> {
        let (client, server) = configs(cc).map_err(|e| failed(from, "prepare QUIC", &e))?;
        let socket = |host: Host<'_>| host.make("listen", || UdpSocket::bind((host.ipv4(), 0)));
        let (near, far) = (socket(from)?, socket(to)?);
        let address = far.local_addr().map_err(|e| failed(to, "listen", &e))?;
        let zero = Instant::now();
        Ok(Self {
            zero,
            sender: Task::start(move |over| alone(send(near, client, address, over))),
            receiver: Task::start(move |over| alone(receive(far, server, zero, over))),
        })
    }

    /// Time since it began.
    pub fn now(&self) -> Duration {
        self.zero.elapsed()
    }

    /// Ends it.
    pub fn stop(self) -> Result<QuicRecord, Error> {
        // Both ends are told: what closes the connection is no failure of the other end.
        self.receiver.end();
        let failed = |e: io::Error| Error::new("QUIC", "a host failed", e.to_string());
        let packets = self.sender.join().unwrap_or_else(Err).map_err(failed)?;
        let progress = self.receiver.join().unwrap_or_else(Err).map_err(failed)?;
        Ok(QuicRecord { progress, packets })
    }
}

/// What a client trusts, and what its server shows.
fn configs(cc: Cc) -> io::Result<(ClientConfig, ServerConfig)> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
    let certificate = made.cert.der().clone();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).map_err(io::Error::other)?;
    let mut client = ClientConfig::with_root_certificates(Arc::new(roots)).map_err(io::Error::other)?;
    let mut transport = TransportConfig::default();
    let control: Arc<dyn ControllerFactory + Send + Sync> = match cc {
        Cc::Cubic => Arc::new(CubicConfig::default()),
        Cc::Bbr => Arc::new(BbrConfig::default()),
    };
    transport.congestion_controller_factory(control);
    client.transport_config(Arc::new(transport));
    let server = ServerConfig::with_single_cert(vec![certificate], key.into()).map_err(io::Error::other)?;
    Ok((client, server))
}

/// Runs one end on the thread that asks.
fn alone<T>(end: impl Future<Output = io::Result<T>>) -> io::Result<T> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(end)
}

fn endpoint(socket: UdpSocket, server: Option<ServerConfig>) -> io::Result<Endpoint> {
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
}

async fn send(
    socket: UdpSocket,
    config: ClientConfig,
    to: SocketAddr,
    over: &AtomicBool,
) -> io::Result<Packets> {
    let mut endpoint = endpoint(socket, None)?;
    endpoint.set_default_client_config(config);
    let connecting = endpoint.connect(to, NAME).map_err(io::Error::other)?;
    let connection = tokio::time::timeout(CONNECT_LIMIT, connecting).await??;
    let mut stream = connection.open_uni().await?;
    let piece = vec![0x5a; PIECE];
    while !over.load(Ordering::Acquire) {
        // One that waits for the network is to see the end, too.
        if let Ok(written) = tokio::time::timeout(LOOK, stream.write(&piece)).await {
            written?;
        }
    }
    let path = connection.stats().path;
    connection.close(0_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(Packets { sent: path.sent_packets, lost: path.lost_packets })
}

/// Receives until it is over.
async fn receive(
    socket: UdpSocket,
    config: ServerConfig,
    zero: Instant,
    over: &AtomicBool,
) -> io::Result<Progress> {
    let mut progress = Progress::default();
    let endpoint = endpoint(socket, Some(config))?;
    let accepted = async {
        let incoming = endpoint.accept().await.ok_or(io::ErrorKind::ConnectionAborted)?;
        Ok::<_, io::Error>(incoming.await?.accept_uni().await?)
    };
    let mut stream = tokio::time::timeout(CONNECT_LIMIT, accepted).await??;
    loop {
        let read = tokio::time::timeout(LOOK, stream.read_chunk(PIECE, true)).await;
        if let Ok(Ok(Some(chunk))) = &read {
            progress.add(zero.elapsed(), chunk.bytes.len() as u64);
        }
        if over.load(Ordering::Acquire) {
            return Ok(progress);
        }
        match read {
            Err(_) | Ok(Ok(Some(_))) => {}
            Ok(Ok(None)) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(Err(error)) => return Err(error.into()),
        }
    }
}
