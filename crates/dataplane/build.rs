//! Compiles the BPF programs with clang, and turns what their headers share with this side into Rust: layouts and limits,
//! and the
//! lists of reasons.

use bindgen::callbacks::{DeriveInfo, ParseCallbacks, TypeKind};
use libbpf_cargo::SkeletonBuilder;
use linkbraid_api::Policy;
use std::{
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

/// Objects, each from a source of its own: the data path, the latency meter, and the fast path of a fabric.
const OBJECTS: &[&str] = &["bond", "latency", "fast_path"];
const INTERFACE: &str = "src/bpf/intf.h";
const FAST_PATH: &str = "src/bpf/fast_path.h";
/// Headers whose structs and limits are generated.
const HEADERS: &[&str] = &[INTERFACE, "src/bpf/latency.h", "src/bpf/explain.h", FAST_PATH];
/// Structs of them that this side reads or writes, with all that they contain.
const SHARED: &str = "lb_(config|member|mac_key|peer_mac|near_peer|guest|guest_key|guest_pair|guest_seen|answer|plan|rule|class|precedence|class_plans|count|lane_counts\
                      |member_counts|progress|delivery|arp_plus_record|meter|latency|path_config|path_out|path_in|path_counts)";

/// Its frames leave by two lanes, so mirror.bpf.h chooses them.
const MIRROR: Policy = Policy::Mirror;

/// What the names of those begin with that hash a frame; they share what makes a lane of a hash.
const HASH: &str = "hash_";

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    println!("cargo:rerun-if-changed=src/bpf");
    policies(&out);
    let machine = format!("/usr/include/{}", multiarch());
    let folders = ["src/bpf", &out.to_string_lossy(), &machine].map(|folder| format!("-I{folder}"));
    let arguments =
        ["-Wall", "-Werror", "-mcpu=v3"].into_iter().map(String::from).chain(folders).collect::<Vec<_>>();
    for object in OBJECTS {
        SkeletonBuilder::new()
            .source(format!("src/bpf/{object}.bpf.c"))
            .obj(out.join(format!("{object}.bpf.o")))
            .clang_args(&arguments)
            .build()
            .expect("clang compiles the BPF programs (Debian packages clang and linux-libc-dev)");
    }
    layouts().write_to_file(out.join("layouts.rs")).expect("OUT_DIR is writable");
    for header in [INTERFACE, FAST_PATH] {
        let table =
            out.join(Path::new(header).file_stem().expect("a file's name")).with_extension("reasons.rs");
        let header = fs::read_to_string(header).expect("the header is there");
        fs::write(table, reasons(&header)).expect("OUT_DIR is writable");
    }
}

/// The shared structs and all limits, under their names in C.
fn layouts() -> bindgen::Bindings {
    bindgen::builder()
        .headers(HEADERS.iter().copied())
        .allowlist_type(SHARED)
        .allowlist_type("lb_stage|lb_reason|lb_path_reason|lb_why")
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

/// The list of policies as C: `policies.h` numbers them, `policies.bpf.h` has the function of each called.
fn policies(out: &Path) {
    let (mut numbers, mut files, mut cases) = (String::new(), String::new(), String::new());
    for (number, policy) in Policy::all().iter().enumerate() {
        let name = policy.word().replace(|letter: char| !letter.is_ascii_alphanumeric(), "_");
        let constant = format!("LB_{}", name.to_uppercase());
        numbers += &format!("\t{constant} = {number},\n");
        if *policy != MIRROR {
            files += &format!("#include \"policies/{name}.bpf.h\"\n");
            cases += &format!("\tcase {constant}:\n\t\t");
            cases += &match name.starts_with(HASH) {
                true => format!("hash = finished({name}_of(skb));\n\t\tbreak;\n"),
                false => format!("return {name}_lane(skb, bond, number, plan, avoid);\n"),
            };
        }
    }
    let write = |name, text| fs::write(out.join(name), text).expect("OUT_DIR is writable");
    write("policies.h", format!("enum lb_policy {{\n{numbers}}};\n"));
    // What mirror sends once, to plain hosts, spreads.
    let lane = format!(
        "{files}\nstatic __always_inline __u32 lane_by_policy(struct __sk_buff *skb, const struct lb_config *bond,\n\
         \t\t__u32 number, const struct lb_plan *plan, __u32 avoid)\n\
         {{\n\t__u32 hash;\n\n\tswitch (plan->policy) {{\n\tdefault:\n{cases}\t}}\n\
         \treturn because(live_hashed_lane(plan, hash, avoid), LB_WHY_HASH, avoid);\n}}\n"
    );
    write("policies.bpf.h", lane);
}

/// Where Debian keeps `asm/types.h` for this machine.
fn multiarch() -> String {
    format!("{}-linux-gnu", env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets the architecture"))
}

/// The `X(number, NAME, VERDICT, "sentence")` lines as a Rust array. Of the verdict users see the first word.
fn reasons(header: &str) -> String {
    let mut text = String::from("&[\n");
    for row in header.lines().filter_map(|line| line.trim().strip_prefix("X(")) {
        let row = row.trim_end_matches(['\\', ' ']).strip_suffix(')').expect("a whole row");
        let [number, name, verdict, sentence] =
            row.splitn(4, ", ").collect::<Vec<_>>().try_into().expect("four columns");
        let (name, verdict) = (name.to_lowercase(), verdict.to_lowercase());
        let verdict = verdict.split('_').next().unwrap_or_default();
        writeln!(
            text,
            "Reason {{ number: {number}, name: {name:?}, verdict: {verdict:?}, sentence: {sentence} }},"
        )
        .expect("a String takes all");
    }
    text + "]\n"
}
