//! The order of the daemon's parts, read from its sources: whoever imports, imports from the same layer or from one below, and
//! no two files import each other, by whatever way round. Each layer is a folder of `src`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::Path,
};

/// The layers, the lowest one first.
const LAYERS: [&str; 4] = ["io", "world", "operations", "control"];

/// What runs on the thread that drives the bonds.
const DRIVEN: [&str; 11] = [
    "control::drive",
    "control::drive::frames",
    "world::driven",
    "world::driven::behind",
    "world::driven::events",
    "world::driven::links",
    "world::driven::reports",
    "world::driving",
    "world::history",
    "world::member",
    "world::tables",
];
/// What else of the daemon it may use.
const DRIVEN_USES: [&str; 2] = ["io::clock", "io::error"];
/// What it may use of the crates that can wait for the kernel: reading what was announced, asking another thread, sending frames,
/// and tables.
const NEVER_WAITS: [&str; 15] = [
    "linkbraid_link::ArpPlusListener",
    "linkbraid_link::ArpPlusSender",
    "linkbraid_link::LinkEvent",
    "linkbraid_link::LinkInfo",
    "linkbraid_link::Neighbour",
    "linkbraid_link::NeighbourReader",
    "linkbraid_link::NeighbourState",
    "linkbraid_link::Speed",
    "linkbraid_link::Watch",
    "linkbraid_link::announcements",
    "linkbraid_link::group_queries",
    "linkbraid_link::station_here",
    "linkbraid_dataplane::ArpPlusRing",
    "linkbraid_dataplane::GuestSeen",
    "linkbraid_dataplane::Tables",
];
/// What waits for files, for other programs, or for the kernel.
const WAITS: [&str; 7] = ["fs", "File", "Command", "Netlink", "DataPath", "LatencyMeter", "Groups"];

/// Modules by their path, such as `operations::desired::diff`, with what they import.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// All sources but those of tests, by the path of their module.
fn sources(folder: &Path, module: &str, found: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("the sources are there").flatten() {
        let path = entry.path();
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let inside = if module.is_empty() { name.clone() } else { format!("{module}::{name}") };
        if path.is_dir() {
            sources(&path, &inside, found);
        } else if name != "tests" && inside != "lib" {
            let text = fs::read_to_string(&path).expect("reads");
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
            found.insert(inside, code.to_owned());
        }
    }
}

/// The paths that `a::{b, c::{d, e}}` stands for.
fn paths(tree: &str) -> Vec<String> {
    let Some((before, group)) = tree.split_once('{') else { return vec![tree.to_owned()] };
    let (mut all, mut depth, mut item) = (Vec::new(), 0, String::new());
    for c in group.chars() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            _ => {}
        }
        if c == ',' && depth == 0 {
            all.push(std::mem::take(&mut item));
        } else {
            item.push(c);
        }
    }
    all.push(item);
    let of =
        |item: &String| paths(item).into_iter().map(|path| format!("{before}{path}")).collect::<Vec<_>>();
    all.iter().filter(|item| !item.is_empty()).flat_map(of).collect()
}

/// What some code names of what begins with one of `starts`, by `use` or in the middle.
fn named(code: &str, starts: &[&str]) -> Vec<String> {
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code: String = lines.collect::<Vec<_>>().join("\n");
    let mut found = Vec::new();
    for start in starts {
        for (at, _) in code.match_indices(start).filter(|(at, _)| !code[..*at].ends_with("(in ")) {
            let is_use = code[..at].trim_end().ends_with("use");
            let rest = &code[at..];
            let end = match is_use {
                true => rest.find(';'),
                false => rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')),
            };
            let tree: String = rest[..end.unwrap_or(rest.len())].replace(" as ", "@");
            let tree: String = tree.split_whitespace().collect();
            found.extend(paths(&tree));
        }
    }
    found
}

/// The parts of a module that it names.
fn parts(module: &str, code: &str) -> Vec<String> {
    let lines = code.lines().map(str::trim).filter(|line| !line.starts_with("//"));
    let (declared, others): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.ends_with(';') && line.split(' ').any(|word| word == "mod"));
    let names = declared.iter().filter_map(|line| line.trim_end_matches(';').split(' ').next_back());
    let is_named = |name: &&str| {
        let path = format!("{name}::");
        let of_another = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        others.iter().any(|line| line.match_indices(&path).any(|(at, _)| !line[..at].ends_with(of_another)))
    };
    names.filter(is_named).map(|name| format!("{module}::{name}")).collect()
}

/// What one module names of others.
fn others(module: &str, code: &str) -> Vec<String> {
    let absolute = |path: String| match path.strip_prefix("crate::") {
        Some(path) => path.to_owned(),
        None => {
            let mut parts: Vec<&str> = module.split("::").collect();
            let mut path = path.as_str();
            while let Some(rest) = path.strip_prefix("super::") {
                parts.pop();
                path = rest;
            }
            parts.push(path);
            parts.join("::")
        }
    };
    named(code, &["crate::", "super::"]).into_iter().map(absolute).chain(parts(module, code)).collect()
}

fn all_sources() -> BTreeMap<String, String> {
    let mut code = BTreeMap::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), "", &mut code);
    code
}

fn imports() -> Imports {
    let code = all_sources();
    let module_of = |path: &str| {
        let parts: Vec<&str> = path.split("::").collect();
        (1..=parts.len()).rev().map(|n| parts[..n].join("::")).find(|path| code.contains_key(path))
    };
    let of = |module: &String, text: &String| {
        let all = others(module, text).into_iter().filter_map(|path| module_of(&path));
        all.filter(|other| other != module).collect()
    };
    code.iter().map(|(module, text)| (module.clone(), of(module, text))).collect()
}

/// The layer of a module, from 0 for the lowest.
fn layer(module: &str) -> usize {
    let folder = module.split("::").next();
    LAYERS
        .iter()
        .position(|layer| Some(*layer) == folder)
        .unwrap_or_else(|| panic!("{module} is in no layer"))
}

/// A way from `module` back to itself.
fn circle<'i>(imports: &'i Imports, way: &mut Vec<&'i str>, done: &mut BTreeSet<&'i str>) -> Option<String> {
    let module = way.last().copied()?;
    for next in imports.get(module).into_iter().flatten() {
        if let Some(at) = way.iter().position(|earlier| earlier == next) {
            return Some(format!("{} -> {next}", way[at..].join(" -> ")));
        }
        if !done.contains(next.as_str()) {
            way.push(next);
            if let Some(found) = circle(imports, way, done) {
                return Some(found);
            }
            way.pop();
        }
    }
    done.insert(module);
    None
}

#[test]
fn no_layer_imports_from_one_above_it() {
    let mut wrong = Vec::new();
    for (module, others) in imports() {
        let above = others.iter().filter(|other| layer(other) > layer(&module));
        wrong.extend(above.map(|other| format!("{module} -> {other}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn no_file_imports_itself_by_way_of_others() {
    let imports = imports();
    assert!(imports["world"].contains("world::bond"), "a part is found: {imports:?}");
    assert!(imports["operations"].contains("world"), "imports are found: {imports:?}");
    let mut done = BTreeSet::new();
    let circles: Vec<String> =
        imports.keys().filter_map(|module| circle(&imports, &mut vec![module], &mut done)).collect();
    assert!(circles.is_empty(), "{circles:#?}");
}

#[test]
fn the_thread_that_drives_bonds_waits_for_nothing_else() {
    let (code, imports) = (all_sources(), imports());
    let mut wrong = Vec::new();
    for module in DRIVEN {
        let own = imports[module].iter().map(String::as_str);
        let own = own.filter(|other| !DRIVEN.contains(other) && !DRIVEN_USES.contains(other));
        wrong.extend(own.map(|other| format!("{module} -> {other}")));
        let crates = named(&code[module], &["linkbraid_link::", "linkbraid_dataplane::"]);
        // Types and numbers of the tables' rows, by the name of the crate.
        let is_row = |path: &String| module == "world::tables" && path.starts_with("linkbraid_dataplane::");
        let foreign =
            crates.into_iter().filter(|path| !is_row(path) && !NEVER_WAITS.contains(&path.as_str()));
        wrong.extend(foreign.map(|path| format!("{module} -> {path}")));
        let words = code[module].lines().filter(|line| !line.trim_start().starts_with("//"));
        let words = words.flat_map(|line| line.split(|c: char| !c.is_alphanumeric() && c != '_'));
        wrong.extend(words.filter(|word| WAITS.contains(word)).map(|word| format!("{module}: {word}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
