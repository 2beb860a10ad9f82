//! The escape filter.

use holm::terminal::EscapeFilter;

/// The output of a guest. Only text, colours, tabs and newlines pass, and the result does not
/// depend on the pieces in which the output arrives.
pub fn escape_filter(data: &[u8]) -> bool {
    let whole = filtered([data]);
    let size = data.first().map_or(1, |byte| usize::from(byte % 16) + 1);
    assert_eq!(filtered(data.chunks(size)), whole, "in pieces of {size}");
    let shown = std::str::from_utf8(&whole).expect("only text passes");
    let mut rest = shown.chars();
    while let Some(character) = rest.next() {
        match character {
            '\n' | '\t' => {}
            '\x1b' => {
                assert_eq!(rest.next(), Some('['), "{shown:?}");
                let end = rest.find(|c| !matches!(c, '0'..='9' | ':' | ';'));
                assert_eq!(end, Some('m'), "{shown:?}");
            }
            other => assert!(!other.is_control(), "{other:?} in {shown:?}"),
        }
    }
    whole == data
}

fn filtered<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> Vec<u8> {
    let mut filter = EscapeFilter::default();
    let mut shown: Vec<u8> = pieces.into_iter().flat_map(|piece| filter.take(piece)).collect();
    shown.extend(filter.finish());
    shown
}
