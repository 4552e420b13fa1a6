//! The far end: what comes is sent back as it came.

use super::ends::Echo;
use super::is_wait;
use std::io::{self, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

/// More than any message has.
const ROOM: usize = 64 << 10;

/// Answers until it is told to end. Its socket's time-out is how soon it looks.
pub fn serve(echo: Echo, over: &AtomicBool) -> io::Result<()> {
    match echo {
        Echo::Tcp(stream) => connection(stream, over),
        Echo::Udp(socket) => {
            datagrams(&socket, over);
            Ok(())
        }
    }
}

fn connection(mut stream: TcpStream, over: &AtomicBool) -> io::Result<()> {
    let mut room = vec![0; ROOM];
    while !over.load(Ordering::Acquire) {
        let bytes = match stream.read(&mut room) {
            // The client is the first to end.
            Ok(0) => return Ok(()),
            Ok(bytes) => bytes,
            Err(error) if is_wait(&error) => continue,
            Err(error) => return Err(error),
        };
        let mut left = &room[..bytes];
        while !left.is_empty() && !over.load(Ordering::Acquire) {
            match stream.write(left) {
                Ok(written) => left = &left[written..],
                Err(error) if is_wait(&error) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(())
}

fn datagrams(socket: &UdpSocket, over: &AtomicBool) {
    let mut room = vec![0; ROOM];
    while !over.load(Ordering::Acquire) {
        // An error is the fate of an earlier answer, or nothing has come.
        if let Ok(bytes) = socket.recv(&mut room) {
            // An answer that the kernel does not take shows as a message that is lost.
            let _ = socket.send(&room[..bytes]);
        }
    }
}
