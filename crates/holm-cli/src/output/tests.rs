//! docs/json.md has the tables of these types, and no key or value of a version is lost.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::PathBuf;

use holm::Code;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::{
    Base, Changed, Checked, Collected, Failed, Flow, Guest, Killed, Line, Named, OneSetting, Ready,
    Rebuilt, Released, RemovedGuest, Renamed, Report, Settings, Signalled, Stat, Unified, Usage,
    Volume, Waited,
};

/// A type, by the name that the page has for it.
struct Document {
    name: &'static str,
    schema: Value,
}

impl Document {
    fn new<T: JsonSchema>(name: &'static str) -> Self {
        let settings =
            SchemaSettings::draft2020_12().for_serialize().with(|s| s.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<T>();
        Self { name, schema: schema.to_value() }
    }
}

fn documents() -> Vec<Document> {
    vec![
        Document::new::<Guest>("guest"),
        Document::new::<Named>("named"),
        Document::new::<RemovedGuest>("removed"),
        Document::new::<Rebuilt>("rebuilt"),
        Document::new::<Ready>("ready"),
        Document::new::<Killed>("killed"),
        Document::new::<Signalled>("signalled"),
        Document::new::<Renamed>("renamed"),
        Document::new::<Waited>("waited"),
        Document::new::<Settings>("settings"),
        Document::new::<OneSetting>("setting"),
        Document::new::<Changed>("changed"),
        Document::new::<Stat>("stat"),
        Document::new::<Flow>("flow"),
        Document::new::<Line>("line"),
        Document::new::<Base>("base"),
        Document::new::<Volume>("volume"),
        Document::new::<Unified>("unified"),
        Document::new::<Usage>("usage"),
        Document::new::<Collected>("collected"),
        Document::new::<Checked>("checked"),
        Document::new::<Report>("report"),
        Document::new::<Released>("released"),
        Document::new::<Failed>("failed"),
    ]
}

/// A key, by its path from the document.
struct Key {
    path: String,
    /// What its value may be, sorted.
    types: BTreeSet<String>,
    /// The values of an enumeration, with what each means.
    values: Vec<(String, String)>,
    about: String,
}

/// The keys of an object and of what is in it, in the order of the type.
fn keys(schema: &Value, path: &str, all: &mut Vec<Key>) {
    for alternative in alternatives(schema) {
        // Every key is always there, so this has them all, in the order of the type.
        for name in alternative["required"].as_array().into_iter().flatten() {
            let name = name.as_str().expect("a name").to_owned();
            let property = &alternative["properties"][&name];
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            let mut key = Key {
                path: path.clone(),
                types: BTreeSet::new(),
                values: Vec::new(),
                about: text(property),
            };
            let mut items = Vec::new();
            for alternative in alternatives(property) {
                key.add(alternative);
                items.extend(alternative.get("items"));
            }
            all.push(key);
            keys(property, &path, all);
            for item in items {
                keys(item, &format!("{path}[]"), all);
            }
        }
    }
}

impl Key {
    fn add(&mut self, schema: &Value) {
        if let Some(value) = schema["const"].as_str() {
            self.values.push((value.to_owned(), text(schema)));
        }
        match &schema["type"] {
            Value::String(name) => self.types.extend([name.clone()]),
            Value::Array(names) => {
                self.types.extend(names.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            _ => self.types.extend(["any".to_owned()]),
        }
        if let Some(name) = schema["items"]["type"].as_str() {
            self.types.remove("array");
            self.types.insert(format!("array of {name}s"));
        }
    }

    fn types(&self) -> String {
        let (null, others): (Vec<&str>, Vec<&str>) =
            self.types.iter().map(String::as_str).partition(|name| *name == "null");
        [others, null].concat().join(" or ")
    }

    /// Its line of the table.
    fn row(&self) -> String {
        let mut about = self.about.clone();
        for (number, (value, meaning)) in self.values.iter().enumerate() {
            let before = if number == 0 { " " } else { "; " };
            let _ = write!(about, "{before}`{value}`: {meaning}");
        }
        format!("| `{}` | {} | {about} |\n", self.path, self.types())
    }
}

/// The schemas of which a value has one: an optional object, a variant of an enumeration.
fn alternatives(schema: &Value) -> Vec<&Value> {
    let inner = schema["anyOf"].as_array().or_else(|| schema["oneOf"].as_array());
    match inner {
        Some(inner) => inner.iter().flat_map(alternatives).collect(),
        None => vec![schema],
    }
}

fn text(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn keys_of(document: &Document) -> Vec<Key> {
    let mut all = Vec::new();
    keys(&document.schema, "", &mut all);
    all
}

fn file(path: &str) -> (PathBuf, String) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    (path, text)
}

/// The page with a generated text between `<!-- NAME -->` and the next `<!-- end -->`.
fn with_section(page: &str, name: &str, section: &str) -> String {
    let begin = format!("<!-- {name} -->\n");
    let (before, rest) = page.split_once(&begin).unwrap_or_else(|| panic!("no {begin}"));
    let (_, after) = rest.split_once("<!-- end -->").expect("an end");
    format!("{before}{begin}\n{section}\n<!-- end -->{after}")
}

#[test]
fn the_page_has_all_keys() {
    let (path, page) = file("../../docs/json.md");
    let mut wanted = page.clone();
    for document in documents() {
        let rows = keys_of(&document).iter().map(Key::row).collect::<String>();
        let table = format!("| key | value | |\n|---|---|---|\n{rows}");
        wanted = with_section(&wanted, document.name, &table);
    }
    let rows =
        Code::ALL.iter().map(|code| format!("| `{}` | {} |\n", code.as_str(), code.meaning()));
    let table = format!("| code | |\n|---|---|\n{}", rows.collect::<String>());
    wanted = with_section(&wanted, "codes", &table);
    if std::env::var_os("HOLM_WRITE").is_some() {
        std::fs::write(path, wanted).expect("the page can be written");
    } else {
        assert!(
            page == wanted,
            "docs/json.md is not what the types say: run this test with HOLM_WRITE=1"
        );
    }
}

#[test]
fn what_a_version_has_stays() {
    let mut now = BTreeSet::new();
    for document in documents() {
        for key in keys_of(&document) {
            now.insert(format!("{} {}: {}", document.name, key.path, key.types()));
            for (value, _) in &key.values {
                now.insert(format!("{} {} = {value}", document.name, key.path));
            }
        }
    }
    now.extend(Code::ALL.iter().map(|code| format!("code {}", code.as_str())));
    let (path, text) = file(&format!("tests/json/v{}.txt", super::VERSION));
    let before: BTreeSet<String> = text.lines().map(str::to_owned).collect();
    let lost: Vec<&String> = before.difference(&now).collect();
    assert!(
        lost.is_empty(),
        "programs rely on these; without them the version must be another: {lost:#?}"
    );
    if std::env::var_os("HOLM_WRITE").is_some() {
        let lines: Vec<String> = now.into_iter().collect();
        std::fs::write(path, lines.join("\n") + "\n").expect("the list can be written");
    } else {
        let new: Vec<&String> = now.difference(&before).collect();
        assert!(
            new.is_empty(),
            "new, and to be kept from now on: run this test with HOLM_WRITE=1: {new:#?}"
        );
    }
}

#[test]
fn every_document_has_its_version_first() {
    let named = Named { name: "web".to_owned() };
    assert_eq!(super::json(&named), r#"{"version":1,"name":"web"}"#);
    assert_eq!(super::array([super::json(&named)]), r#"[{"version":1,"name":"web"}]"#);
    assert_eq!(super::array([]), "[]");
}
