//! A guest's settings: guest.toml, and changes as given to `holm set`.

use holm::config::{Change, changed, edit_text, effective, from_changes, parse};

const ORIGIN: &str = "guest.toml";

/// A guest.toml. One that is accepted can be shown, edited and compared.
pub fn guest_toml(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let Ok(config) = parse(text, ORIGIN) else {
        assert!(edit_text(text, &[]).is_err(), "edited although it is refused");
        return false;
    };
    assert!(effective(text, ORIGIN).is_ok_and(|values| !values.is_empty()));
    assert!(changed(&config, &config).is_empty(), "differs from itself");
    let edited = edit_text(text, &[]).expect("what is accepted can be edited");
    assert_eq!(parse(&edited, ORIGIN).expect("an edited file is accepted"), config);
    true
}

/// Changes, one on each line. Applied directly or to the text of a guest.toml, they result in the
/// same config.
pub fn guest_changes(data: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(data) else { return false };
    let changes: Result<Vec<Change>, _> = text.lines().map(Change::parse).collect();
    let Ok(changes) = changes else { return false };
    let direct = from_changes(&changes);
    let by_text = edit_text("", &changes).and_then(|text| parse(&text, ORIGIN));
    match (direct, by_text) {
        (Ok(direct), Ok(by_text)) => {
            assert_eq!(direct, by_text);
            true
        }
        (Err(direct), Err(by_text)) => {
            assert_eq!(direct.to_string(), by_text.to_string());
            false
        }
        (direct, by_text) => panic!("direct: {direct:?}\nby text: {by_text:?}"),
    }
}
