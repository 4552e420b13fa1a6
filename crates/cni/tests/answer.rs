//! What a runtime reads of the plugin, whatever becomes of the runtime.

use std::{
    io,
    process::{Command, Output, Stdio},
};

/// Asks the plugin for its versions, whose answer has the most lines of those that need no host.
fn versions(stdout: Stdio) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linkbraid-cni"))
        .env("CNI_COMMAND", "VERSION")
        .stdin(empty_configuration())
        .stdout(stdout)
        .stderr(Stdio::piped())
        .output()
        .unwrap()
}

fn empty_configuration() -> Stdio {
    let (reader, mut writer) = io::pipe().unwrap();
    io::Write::write_all(&mut writer, b"{}").unwrap();
    reader.into()
}

#[test]
fn an_answer_that_nobody_reads_is_a_failure_in_one_line() {
    let (reader, writer) = io::pipe().unwrap();
    drop(reader);
    let output = versions(writer.into());
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(said, "linkbraid-cni: the answer cannot be written: Broken pipe (os error 32)\n");
}

/// A socket of datagrams keeps what is written in one piece apart from what is written in the next one.
#[test]
fn an_answer_is_written_in_one_piece() {
    let (reader, writer) = std::os::unix::net::UnixDatagram::pair().unwrap();
    let output = versions(std::os::fd::OwnedFd::from(writer).into());
    assert!(output.status.success(), "{output:?}");
    let mut piece = vec![0; 4096];
    let length = reader.recv(&mut piece).unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&piece[..length]).unwrap();
    assert_eq!(answer["supportedVersions"][4], "1.1.0");
    reader.set_nonblocking(true).unwrap();
    assert!(reader.recv(&mut piece).is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock));
}
