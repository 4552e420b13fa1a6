use super::{Window, drive, serve};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("binds");
    let client = TcpStream::connect(listener.local_addr().expect("has one")).expect("connects");
    (client, listener.accept().expect("accepts").0)
}

/// Answers when an answer has taken so long.
fn slow(mut socket: TcpStream, takes: Duration) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut message = [0; 1];
        while socket.read_exact(&mut message).is_ok() {
            thread::sleep(takes);
            if socket.write_all(&message).is_err() {
                return;
            }
        }
    })
}

#[test]
fn a_round_that_ends_after_a_common_window_does_not_count() {
    const TAKES: Duration = Duration::from_millis(300);
    let (client, server) = pair();
    let echo = slow(server, TAKES);
    let begin = Instant::now();
    // The first round is under way when the window begins, and the second one when it ends.
    let window = Window::At(begin + TAKES / 2, TAKES);
    let half = drive(client, 1, window).expect("memory").expect("bounces");
    assert_eq!(half.len(), 0);
    assert!(begin.elapsed() >= TAKES * 2);
    echo.join().expect("ends");
}

#[test]
fn a_window_of_one_alone_has_a_round_however_long_that_takes() {
    let (client, server) = pair();
    let echo = thread::spawn(move || serve(server, 1));
    let half = drive(client, 1, Window::Warm(Duration::ZERO)).expect("memory").expect("bounces");
    assert_eq!(half.len(), 1);
    echo.join().expect("ends").expect("the other end closed");
}
