//! Compiles the BPF programs with clang, and turns what their headers share with this side into Rust: layouts and limits,
//! and the reasons of `intf.h`.

use bindgen::callbacks::{DeriveInfo, ParseCallbacks, TypeKind};
use libbpf_cargo::SkeletonBuilder;
use std::{env, fmt::Write as _, fs, path::PathBuf};

/// Objects, each from a source of its own: the data path, the latency meter, and the short cut of a fabric.
const OBJECTS: &[&str] = &["bond", "latency", "shortcut"];
const INTERFACE: &str = "src/bpf/intf.h";
/// Headers whose structs and limits are generated.
const HEADERS: &[&str] = &[INTERFACE, "src/bpf/latency.h", "src/bpf/shortcut.h"];
/// Structs of them that this side reads or writes, with all that they contain.
const SHARED: &str = "lb_(config|member|mac_key|peer_mac|near_peer|answer|plan|rule|class|class_plans|count|lane_counts\
                      |member_counts|arp_plus_record|meter|latency|way_config|way_out|way_in|way_counts)";

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
    layouts().write_to_file(out.join("layouts.rs")).expect("OUT_DIR is writable");
    let header = fs::read_to_string(INTERFACE).expect("the interface header is there");
    fs::write(out.join("reasons.rs"), reasons(&header)).expect("OUT_DIR is writable");
}

/// The shared structs and all limits, under their names in C.
fn layouts() -> bindgen::Bindings {
    bindgen::builder()
        .headers(HEADERS.iter().copied())
        .allowlist_type(SHARED)
        .allowlist_type("lb_policy|lb_stage|lb_way_reason")
        .allowlist_var("LB_.*")
        .prepend_enum_name(false)
        .blocklist_type("lb_mac")
        .raw_line("pub type lb_mac = [u8; 6];")
        .derive_copy(false)
        .derive_debug(false)
        .parse_callbacks(Box::new(PlainData))
        .formatter(bindgen::Formatter::None)
        .generate()
        .expect("libclang reads the headers (Debian package clang brings it)")
}

/// Makes every struct one that may be read from bytes and written as bytes, which does not compile where it has padding.
#[derive(Debug)]
struct PlainData;

impl ParseCallbacks for PlainData {
    fn add_derives(&self, info: &DeriveInfo<'_>) -> Vec<String> {
        match info.kind {
            TypeKind::Struct => {
                ["Debug", "Clone", "Copy", "PartialEq", "Eq", "bytemuck::Pod", "bytemuck::Zeroable"]
                    .map(String::from)
                    .to_vec()
            }
            _ => Vec::new(),
        }
    }
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
