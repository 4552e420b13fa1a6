//! The description of the interface is what the types say.

use super::*;
use crate::{ClassDel, EventRecord, Records, Reply};
use schemars::{JsonSchema, generate::SchemaSettings};
use std::{collections::BTreeMap, fmt::Write as _, path::Path};

/// What methods give: fields of [`Records`]. All others give warnings.
const GIVES: [(&str, &[&str]); 12] = [
    ("ClassShow", &["classes"]),
    ("FabricShow", &["fabrics"]),
    ("FabricStats", &["fabric_stats"]),
    ("Apply", &["applied"]),
    ("Changes", &["changes"]),
    ("Show", &["bonds", "fabrics"]),
    ("Peers", &["peers"]),
    ("Lanes", &["lanes"]),
    ("Stats", &["stats", "fabric_stats"]),
    ("Latency", &["latency"]),
    ("Explain", &["explained"]),
    ("Check", &["findings"]),
];
const HEAD: &str = "\
# What the daemon of linkbraid does for programs. The command uses it, too, and prints the same records with --json.
#
# Methods and fields are added and never renamed. A field that may be absent, or null, has a question mark. Whoever reads this must
# pass over fields that he does not know; the daemon refuses those that it does not know. An object without fields here has one of
# several forms, which its comment names.
";
const WIDTH: usize = 120;

type Types = BTreeMap<String, Value>;

fn schema<T: JsonSchema>(settings: SchemaSettings, types: &mut Types) -> Value {
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(Value::Object(defined)) = schema.as_object_mut().and_then(|schema| schema.remove("$defs")) {
        types.extend(defined);
    }
    schema
}

fn text<'a>(schema: &'a Value, key: &str) -> Option<&'a str> {
    schema.get(key)?.as_str()
}

fn list<'a>(schema: &'a Value, key: &str) -> &'a [Value] {
    schema.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn named<'a>(schema: &Value, types: &'a Types) -> Option<(&'a String, &'a Value)> {
    types.get_key_value(text(schema, "$ref")?.strip_prefix("#/$defs/")?)
}

fn fields(schema: &Value) -> Option<&serde_json::Map<String, Value>> {
    schema.get("properties")?.as_object()
}

/// The words of a type that is one of some; none where it is another type.
fn words(schema: &Value) -> Option<Vec<&str>> {
    if let Some(all) = schema.get("enum") {
        return all.as_array()?.iter().map(Value::as_str).collect();
    }
    let all: Vec<&str> = list(schema, "oneOf").iter().map_while(|one| text(one, "const")).collect();
    (!all.is_empty() && all.len() == list(schema, "oneOf").len()).then_some(all)
}

/// Whether Varlink takes all of them as names.
fn are_names(words: &[&str]) -> bool {
    words.iter().all(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn is_null(schema: &Value) -> bool {
    text(schema, "type") == Some("null")
}

fn type_of(schema: &Value, types: &Types) -> String {
    if let Some((name, of)) = named(schema, types) {
        let is_type = fields(of).is_some() || words(of).is_some_and(|words| are_names(&words));
        return if is_type { name.clone() } else { type_of(of, types) };
    }
    if let [one, other] = list(schema, "anyOf")
        && (is_null(one) || is_null(other))
    {
        let it = if is_null(one) { other } else { one };
        return format!("?{}", type_of(it, types).trim_start_matches('?'));
    }
    if words(schema).is_some() {
        return "string".to_owned();
    }
    let (name, maybe) = match list(schema, "type") {
        [one, other] => {
            let null = |schema: &Value| schema.as_str() == Some("null");
            (if null(one) { other } else { one }.as_str(), if null(one) || null(other) { "?" } else { "" })
        }
        _ => (text(schema, "type"), ""),
    };
    let name = match name {
        Some("string") => "string".to_owned(),
        Some("integer") => "int".to_owned(),
        Some("number") => "float".to_owned(),
        Some("boolean") => "bool".to_owned(),
        Some("array") => {
            format!("[]{}", schema.get("items").map_or_else(|| "object".to_owned(), |of| type_of(of, types)))
        }
        _ => "object".to_owned(),
    };
    format!("{maybe}{name}")
}

/// A comment in lines that are not too long.
fn comment(text: &str, indent: &str, out: &mut String) {
    for paragraph in text.split("\n\n") {
        let mut line = format!("{indent}#");
        for word in paragraph.split_whitespace() {
            if line.len() + 1 + word.len() > WIDTH {
                writeln!(out, "{line}").unwrap();
                line = format!("{indent}#");
            }
            write!(line, " {word}").unwrap();
        }
        writeln!(out, "{line}").unwrap();
    }
}

/// What is said of a field: its own comment, or that of its type where that is named nowhere else.
fn about(schema: &Value, types: &Types) -> String {
    let mut all = text(schema, "description").unwrap_or_default().to_owned();
    let inner = list(schema, "anyOf").iter().find(|one| !is_null(one)).unwrap_or(schema);
    let inner = inner.get("items").unwrap_or(inner);
    let of = named(inner, types).map_or(inner, |(_, of)| of);
    if let Some(words) = words(of).filter(|words| !are_names(words)) {
        write!(all, " (one of {})", words.join(", ")).unwrap();
    } else if !list(of, "oneOf").is_empty() && words(of).is_none() {
        let forms: Vec<String> = list(of, "oneOf").iter().map(form).collect();
        write!(all, " (one of {})", forms.join(", ")).unwrap();
    }
    all
}

fn form(schema: &Value) -> String {
    match (text(schema, "const"), words(schema), fields(schema)) {
        (Some(word), ..) => format!("\"{word}\""),
        (_, Some(words), _) => words.iter().map(|word| format!("\"{word}\"")).collect::<Vec<_>>().join(", "),
        (_, _, Some(fields)) => {
            format!("{{{}}}", fields.keys().map(|key| format!("\"{key}\": N")).collect::<Vec<_>>().join(", "))
        }
        _ => "a value".to_owned(),
    }
}

/// The fields of a type, in brackets.
fn object(schema: &Value, types: &Types, out: &mut String) {
    let Some(all) = fields(schema).filter(|all| !all.is_empty()) else { return out.push_str("()") };
    let required: Vec<&str> = list(schema, "required").iter().filter_map(Value::as_str).collect();
    out.push_str("(\n");
    for (at, (name, of)) in all.iter().enumerate() {
        comment(&about(of, types), "  ", out);
        let of = type_of(of, types);
        let maybe = if required.contains(&name.as_str()) || of.starts_with('?') { "" } else { "?" };
        let end = if at + 1 < all.len() { "," } else { "" };
        writeln!(out, "  {name}: {maybe}{of}{end}").unwrap();
    }
    out.push(')');
}

/// The names of types that these need.
fn needed(schema: &Value, types: &Types, all: &mut BTreeMap<String, Value>) {
    if let Some((name, of)) = named(schema, types)
        && !all.contains_key(name)
    {
        if fields(of).is_some() || words(of).is_some_and(|words| are_names(&words)) {
            all.insert(name.clone(), of.clone());
        }
        needed(of, types, all);
    }
    match schema {
        Value::Object(map) => map.values().for_each(|of| needed(of, types, all)),
        Value::Array(list) => list.iter().for_each(|of| needed(of, types, all)),
        _ => {}
    }
}

/// The description, from the types.
fn description() -> String {
    let mut types = Types::new();
    let requests = schema::<Request>(SchemaSettings::default(), &mut types);
    let records = schema::<Records>(SchemaSettings::default().for_serialize(), &mut types);
    let event = schema::<EventRecord>(SchemaSettings::default().for_serialize(), &mut types);
    let error = schema::<Error>(SchemaSettings::default().for_serialize(), &mut types);
    types.insert("EventRecord".to_owned(), event);

    let mut out = format!("{HEAD}interface {INTERFACE}\n");
    let mut used = BTreeMap::new();
    let mut methods = String::new();
    for method in list(&requests, "oneOf") {
        let parts = fields(method).expect("a method and its parameters");
        let name = text(&parts["method"], "const").expect("a name");
        comment(text(method, "description").expect("a comment"), "", &mut methods);
        write!(methods, "method {name}").unwrap();
        let parameters = parts.get("parameters").cloned().unwrap_or_default();
        let parameters = named(&parameters, &types).map_or(&parameters, |(_, of)| of);
        object(parameters, &types, &mut methods);
        // What is asked for in another request is a request itself, for which Varlink has no type.
        parameters.get("properties").inspect(|all| {
            let others = all.as_object().into_iter().flatten().filter(|(key, _)| *key != "request");
            others.for_each(|(_, of)| needed(of, &types, &mut used));
        });
        let gives = GIVES.iter().find(|(of, _)| *of == name).map(|(_, gives)| *gives);
        let gives = match (gives, name) {
            (None, "Monitor") => "event: ?EventRecord, warnings: ?[]string".to_owned(),
            (None, _) => "warnings: []string".to_owned(),
            (Some(gives), _) => {
                let one = |key: &&str| {
                    let of = list(&records, "oneOf").iter().find_map(|one| fields(one)?.get(*key));
                    let of = of.unwrap_or_else(|| panic!("no records '{key}'"));
                    needed(of, &types, &mut used);
                    format!("{key}: {}{}", if gives.len() > 1 { "?" } else { "" }, type_of(of, &types))
                };
                gives.iter().map(one).collect::<Vec<_>>().join(", ")
            }
        };
        writeln!(methods, " -> ({gives})\n").unwrap();
    }
    needed(&json!({"$ref": "#/$defs/EventRecord"}), &types, &mut used);
    for (name, of) in &used {
        out.push('\n');
        comment(text(of, "description").expect("a comment"), "", &mut out);
        write!(out, "type {name} ").unwrap();
        match words(of) {
            Some(words) => write!(out, "({})", words.join(", ")).unwrap(),
            None => object(of, &types, &mut out),
        }
        out.push('\n');
    }
    write!(out, "\n{methods}").unwrap();
    comment("What was asked for is refused, or failed, and nothing was changed.", "", &mut out);
    out.push_str("error Refused ");
    object(&error, &types, &mut out);
    out.push('\n');
    out
}

#[test]
fn the_file_describes_every_method_and_record() {
    let made = description();
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/org.linkbraid.Daemon.varlink");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    let file = std::fs::read_to_string(&path).unwrap();
    assert_eq!(file, made, "run: UPDATE=1 cargo test -p linkbraid-api varlink");
    // What another implementation makes of it.
    let read = zlink::idl::Interface::try_from(made.as_str()).unwrap();
    assert_eq!(read.name(), INTERFACE);
    let gives: Vec<&str> = GIVES.iter().flat_map(|(_, gives)| *gives).copied().collect();
    let records = schema::<Records>(SchemaSettings::default(), &mut Types::new());
    for one in list(&records, "oneOf") {
        let keys: Vec<&String> = fields(one).unwrap().keys().collect();
        assert!(keys.iter().all(|key| gives.contains(&key.as_str())), "no method gives {keys:?}");
    }
}

#[test]
fn a_request_is_a_call_and_a_call_a_request() {
    let request =
        Request::ClassDel(ClassDel { bond: "bond0".parse().unwrap(), name: "voice".parse().unwrap() });
    let call = Method::try_from(&request).unwrap();
    assert_eq!(
        serde_json::to_string(&call).unwrap(),
        r#"{"method":"org.linkbraid.Daemon.ClassDel","parameters":{"bond":"bond0","name":"voice"}}"#
    );
    assert_eq!(Request::try_from(call).unwrap(), request);
    // Without parameters, as clients send what has none.
    let parameters = [None, Some(json!({}))];
    for parameters in parameters {
        let call = Method { method: "org.linkbraid.Daemon.Changes".to_owned(), parameters };
        assert_eq!(Request::try_from(call).unwrap(), Request::Changes {});
    }
}

#[test]
fn replies_are_told_apart() {
    for reply in [
        Reply::Done { warnings: vec!["slow".to_owned()] },
        Reply::Records(Records::Lanes(Vec::new())),
        Reply::Records(Records::Changes(Vec::new())),
    ] {
        let text = serde_json::to_string(&reply).unwrap();
        assert_eq!(serde_json::from_str::<Reply>(&text).unwrap(), reply, "{text}");
    }
    assert!(serde_json::from_str::<Reply>(r#"{"wishes":[]}"#).is_err());
}
