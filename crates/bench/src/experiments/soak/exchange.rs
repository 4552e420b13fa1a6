//! A question and its answer, over UDP: whether two hosts reach each other now.

use crate::experiments::prelude::*;
use crate::flow::{Task, answered};
use std::io;
use std::net::UdpSocket;

const ANSWER: Duration = Duration::from_millis(20);
/// So many answers in a row make it good: more than there are lanes, which take turns.
const IN_A_ROW: u32 = 12;

#[derive(Debug)]
pub(super) struct Exchange {
    asks: UdpSocket,
    _answers: Task<io::Result<()>>,
}

impl Exchange {
    /// Makes `there` answer what `here` asks.
    pub fn start(here: Host<'_>, there: Host<'_>) -> Result<Self, Error> {
        let (asks, answers) = answered(here, there)?;
        here.make("ask", || asks.set_read_timeout(Some(ANSWER)))?;
        Ok(Self { asks, _answers: answers })
    }

    /// Asks until many answers in a row have come; how long that took, or what was seen instead.
    pub fn wait(&self, limit: Duration) -> Result<Duration, String> {
        let begin = Instant::now();
        let (mut number, mut row, mut answered, mut last_error) = (0_u64, 0, 0_u64, String::new());
        while begin.elapsed() < limit {
            number += 1;
            match self.ask(number) {
                Ok(true) => (row, answered) = (row + 1, answered + 1),
                Ok(false) => row = 0,
                Err(error) => {
                    // Without a route, say: no reason to ask in a tight loop.
                    (row, last_error) = (0, error.to_string());
                    std::thread::sleep(Duration::from_millis(1));
                }
            }
            if row >= IN_A_ROW {
                return Ok(begin.elapsed());
            }
        }
        let error = if last_error.is_empty() { String::new() } else { format!(", last error: {last_error}") };
        Err(format!("{answered} of {number} questions answered in {limit:?}{error}"))
    }

    /// Whether the answer to this question came in time. Late answers to earlier ones are passed over.
    fn ask(&self, number: u64) -> io::Result<bool> {
        self.asks.send(&number.to_be_bytes())?;
        let deadline = Instant::now() + ANSWER;
        let mut answer = [0; 8];
        while Instant::now() < deadline {
            match self.asks.recv(&mut answer) {
                Ok(8) if u64::from_be_bytes(answer) == number => return Ok(true),
                Ok(_) => {}
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                    return Ok(false);
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }
}
