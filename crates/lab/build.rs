//! Compiles the switch-port program with clang for the BPF target.

use libbpf_cargo::SkeletonBuilder;
use std::path::PathBuf;

const SOURCE: &str = "src/bpf/port.bpf.c";

fn main() {
    println!("cargo::rerun-if-changed=src/bpf");
    let Some(out) = std::env::var_os("OUT_DIR").map(PathBuf::from) else {
        panic!("OUT_DIR: not set: cargo sets it for build scripts");
    };
    let arch = std::env::var("CARGO_CFG_TARGET_ARCH").unwrap_or_else(|_| "x86_64".into());
    // Debian keeps <asm/types.h> in a folder that clang does not search for its BPF target.
    let multiarch = format!("-I/usr/include/{arch}-linux-gnu");
    let built = SkeletonBuilder::new()
        .source(SOURCE)
        .obj(out.join("port.bpf.o"))
        .clang_args([multiarch.as_str(), "-Wall", "-Werror", "-mcpu=v2"])
        .build();
    if let Err(error) = built {
        panic!(
            "{SOURCE}: cannot compile: {error:#}\n  hint: apt-get install clang libelf-dev zlib1g-dev linux-libc-dev"
        );
    }
}
