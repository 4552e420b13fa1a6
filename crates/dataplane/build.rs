//! Compiles the BPF programs with clang and turns the reasons of `intf.h` into a Rust table.

use libbpf_cargo::SkeletonBuilder;
use std::{env, fmt::Write as _, fs, path::PathBuf};

/// Objects, each from a source of its own: the data path, the latency meter, and the short cut of a fabric.
const OBJECTS: &[&str] = &["bond", "latency", "shortcut"];
const INTERFACE: &str = "src/bpf/intf.h";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-changed=src/bpf");
    for object in OBJECTS {
        SkeletonBuilder::new()
            .source(format!("src/bpf/{object}.bpf.c"))
            .obj(out.join(format!("{object}.bpf.o")))
            .clang_args(["-Wall", "-Werror", "-mcpu=v3", &format!("-I/usr/include/{}", multiarch())])
            .build()
            .expect("clang compiles the BPF programs (Debian packages clang and linux-libc-dev)");
    }
    let header = fs::read_to_string(INTERFACE).expect("the interface header is there");
    fs::write(out.join("reasons.rs"), reasons(&header)).expect("OUT_DIR is writable");
}

/// Where Debian keeps `asm/types.h` for this machine.
fn multiarch() -> String {
    format!("{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the architecture"))
}

/// The `X(number, NAME, "verdict", "sentence")` lines as a Rust array.
fn reasons(header: &str) -> String {
    let mut text = String::from("&[\n");
    let mut rows = 0;
    for line in header.lines().map(str::trim).filter(|line| line.starts_with("X(")) {
        let row = line.trim_end_matches(['\\', ' ', '\t']).trim_start_matches("X(");
        let mut parts = row.splitn(4, ", ");
        let number = parts.next().expect("number");
        let name = parts.next().expect("name").to_lowercase();
        let verdict = parts.next().expect("verdict");
        let sentence = parts.next().expect("sentence").trim_end_matches(')');
        writeln!(
            text,
            "Reason {{ number: {number}, name: \"{name}\", verdict: {verdict}, sentence: {sentence} }},"
        )
        .expect("a String takes all");
        rows += 1;
    }
    assert!(rows > 20, "the reasons of {INTERFACE} were not found");
    text + "]\n"
}
