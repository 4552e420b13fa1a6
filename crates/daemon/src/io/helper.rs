//! A process beside the daemon for the little that needs rights which the daemon gives up at its start: to open programs and maps of
//! bonds by their numbers, to try out the kernel in a network namespace, to see where another process is, and to make the
//! directory of all control groups.
//!
//! It hears the daemon alone, over a pair of sockets, never anything of the network, and ends with it. Each question has a thread and a
//! socket for the answer of its own, so none waits for another one.

use capctl::{Cap, CapSet, CapState, prctl};
use linkbraid_dataplane::{MAPS_MAX, Object};
use linkbraid_fabric::line::{self, receive, send};
use nix::{
    errno::Errno,
    sys::signal::{SigSet, Signal},
    unistd::{ForkResult, fork},
};
use serde::{Deserialize, Serialize};
use std::{
    fs, io,
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process,
    sync::{Arc, OnceLock},
    thread::Builder,
};

/// What the daemon keeps, as far as it has it: interfaces, packets, and BPF; and locked memory, which it hands on to the program of a
/// fabric over libfabric.
const DAEMON: [Cap; 5] = [Cap::NET_ADMIN, Cap::NET_RAW, Cap::BPF, Cap::PERFMON, Cap::IPC_LOCK];
/// What the helper keeps, as far as it has it.
const HELPER: [Cap; 6] =
    [Cap::SYS_ADMIN, Cap::NET_ADMIN, Cap::BPF, Cap::PERFMON, Cap::SYS_PTRACE, Cap::DAC_OVERRIDE];
/// What processes and threads are called, at most 15 bytes.
const NAME: &str = "lb-helper";
/// Where the kernel shows processes.
const PROC: &str = "/proc";

/// The daemon's end; none where there is no helper, and everything is done here.
static LINE: OnceLock<OwnedFd> = OnceLock::new();

/// What the helper is asked for.
#[derive(Debug, Serialize, Deserialize)]
enum Question {
    /// The files of something that belongs to a bond.
    Open(Object),
    /// Whether the kernel takes what a bond is made of.
    Trial,
    /// The network namespace of a process.
    Namespace(u32),
    /// The directory of all control groups: whether it is to be there.
    Groups(bool),
}

/// What it answers: words, with the files that were asked for; or an error of the kernel.
type Answer = Result<String, i32>;
const _: () = assert!(MAPS_MAX <= line::FILES_MAX);

/// What it does that is not its own.
pub(crate) struct Does {
    /// The trial, in words.
    pub trial: Box<dyn Fn() -> String + Send + Sync>,
    /// Makes the directory of all control groups, or removes it if it is empty.
    pub groups: fn(bool) -> io::Result<()>,
}

/// Starts the helper, and gives up all other rights for good. To be called while there is one thread, which is checked.
///
/// # Errors
/// Those of the system calls.
pub(crate) fn start(does: Does) -> io::Result<()> {
    if fs::read_dir("/proc/self/task")?.count() != 1 {
        return Err(io::Error::other("there are other threads, which would keep their rights"));
    }
    // What is executed after this gets no right back.
    prctl::set_no_new_privs()?;
    let (own, theirs) = line::pair()?;
    // SAFETY: there is one thread, so nothing is half done in the memory that the child gets.
    if let ForkResult::Child = unsafe { fork() }? {
        drop(own);
        let done = keep(&HELPER).and_then(|()| serve(&theirs, does));
        process::exit(i32::from(done.is_err()));
    }
    drop(theirs);
    let has = CapState::get_current()?.permitted;
    // Where they are missing, CAP_SYS_ADMIN holds them.
    let splits = has.has(Cap::BPF) && has.has(Cap::PERFMON);
    let more = if splits { &[][..] } else { &[Cap::SYS_ADMIN][..] };
    keep(&[&DAEMON, more].concat())?;
    let _ = LINE.set(own);
    linkbraid_dataplane::open_by(|object| ask(&Question::Open(object)).map(|(_, files)| files));
    Ok(())
}

/// Gives up all capabilities of this thread but these.
fn keep(kept: &[Cap]) -> io::Result<()> {
    let kept = CapState::get_current()?.permitted & kept.iter().copied().collect::<CapSet>();
    Ok(CapState { effective: kept, permitted: kept, inheritable: CapSet::empty() }.set_current()?)
}

/// The helper's side, until the daemon is gone.
fn serve(line: &OwnedFd, does: Does) -> io::Result<()> {
    prctl::set_name(NAME)?;
    // It ends when the daemon does, which may go on for a while after such a signal to both.
    let signals: SigSet = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP].into_iter().collect();
    signals.thread_block()?;
    linkbraid_dataplane::on_message(|_| {});
    let does = Arc::new(does);
    loop {
        let (words, mut files) = receive(line)?;
        if words.is_empty() {
            return Ok(());
        }
        // Where one of them is missing, or no thread can be had, the answer is the end of the socket.
        let (Ok(question), Some(reply)) = (serde_json::from_slice(&words), files.pop()) else { continue };
        let does = does.clone();
        let _ = Builder::new().name(NAME.into()).spawn(move || {
            let (answer, files) = match answer(question, &does) {
                Ok((words, files)) => (Ok(words), files),
                Err(error) => (Err(error.raw_os_error().unwrap_or(Errno::EIO as i32)), Vec::new()),
            };
            let words = serde_json::to_vec::<Answer>(&answer).unwrap_or_default();
            // Who asked may be gone.
            let _ = send(&reply, &words, &files);
        });
    }
}

fn answer(question: Question, does: &Does) -> io::Result<(String, Vec<OwnedFd>)> {
    let said = |words: String| (words, Vec::new());
    match question {
        Question::Open(object) => Ok((String::new(), linkbraid_dataplane::open(object)?)),
        Question::Trial => Ok(said((does.trial)())),
        Question::Namespace(process) => {
            let link = fs::read_link(Path::new(PROC).join(process.to_string()).join("ns/net"))?;
            Ok(said(link.to_string_lossy().into_owned()))
        }
        Question::Groups(there) => (does.groups)(there).map(|()| said(String::new())),
    }
}

/// Asks the helper, and waits for its answer.
fn ask(question: &Question) -> io::Result<(String, Vec<OwnedFd>)> {
    ask_over(LINE.get().ok_or_else(|| io::Error::from(io::ErrorKind::PermissionDenied))?, question)
}

fn ask_over(line: &OwnedFd, question: &Question) -> io::Result<(String, Vec<OwnedFd>)> {
    let (own, theirs) = line::pair()?;
    let gone = |_| io::Error::other("the process beside the daemon that does this has ended");
    send(line, &serde_json::to_vec(question)?, &[theirs]).map_err(gone)?;
    let (words, files) = receive(&own)?;
    if words.is_empty() {
        return Err(gone(Errno::EPIPE));
    }
    let answer: Answer = serde_json::from_slice(&words)?;
    answer.map(|words| (words, files)).map_err(io::Error::from_raw_os_error)
}

/// What the helper's trial came to; none where there is no helper.
pub(crate) fn trial() -> Option<io::Result<String>> {
    LINE.get().map(|_| ask(&Question::Trial).map(|(words, _)| words))
}

/// The network namespace of a process, which the kernel does not tell everybody.
///
/// # Errors
/// It does not tell the helper either; or the process is gone.
pub(crate) fn namespace(process: u32) -> io::Result<PathBuf> {
    ask(&Question::Namespace(process)).map(|(link, _)| link.into())
}

/// Makes the directory of all control groups, or removes it if it is empty. The kernel has it in one that nobody may write to.
///
/// # Errors
/// Those of the kernel.
pub(crate) fn groups(there: bool) -> io::Result<()> {
    ask(&Question::Groups(there)).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_answers_until_the_daemon_is_gone_whatever_it_hears() {
        let (own, theirs) = line::pair().unwrap();
        let groups = |there| if there { Ok(()) } else { Err(Errno::EBUSY.into()) };
        let does = Does { trial: Box::new(|| "tried".into()), groups };
        let helper = std::thread::spawn(move || serve(&theirs, does));
        let words = |question: &Question| ask_over(&own, question).map(|(words, _)| words);
        send(&own, b"nonsense", &[]).unwrap();
        assert_eq!(words(&Question::Trial).unwrap(), "tried");
        let here = fs::read_link("/proc/self/ns/net").unwrap();
        assert_eq!(words(&Question::Namespace(process::id())).unwrap(), here.to_string_lossy());
        let gone = words(&Question::Namespace(u32::MAX)).unwrap_err();
        assert_eq!(gone.kind(), io::ErrorKind::NotFound);
        assert_eq!(words(&Question::Groups(true)).unwrap(), "");
        assert_eq!(words(&Question::Groups(false)).unwrap_err().raw_os_error(), Some(Errno::EBUSY as i32));
        drop(own);
        helper.join().unwrap().unwrap();
        let (own, theirs) = line::pair().unwrap();
        drop(theirs);
        let gone = ask_over(&own, &Question::Trial).unwrap_err();
        assert!(gone.to_string().contains("has ended"), "{gone}");
    }
}
