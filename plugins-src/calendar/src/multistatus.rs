//! The answer of a CalDAV server that lists files.

use quick_xml::{
    Reader,
    escape::resolve_xml_entity,
    events::{BytesRef, Event},
};

/// One file in an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListedFile {
    /// Its path at the server.
    pub(crate) href: String,
    /// Its text.
    pub(crate) data: String,
}

/// Reads an answer. `None` if it is no list of files.
pub(crate) fn read_files(xml: &str) -> Option<Vec<ListedFile>> {
    let mut reader = Reader::from_str(xml);
    let mut files = Vec::new();
    let (mut file, mut text, mut is_list) = (ListedFile::default(), String::new(), false);
    loop {
        match reader.read_event().ok()? {
            Event::Start(start) => {
                text.clear();
                if start.local_name().as_ref() == "response" {
                    file = ListedFile::default();
                }
            }
            Event::Text(part) => text.push_str(&part.xml10_content()),
            Event::CData(part) => text.push_str(&part.xml10_content()),
            Event::GeneralRef(part) => text.push_str(&entity_text(&part)?),
            Event::End(end) => match end.local_name().as_ref() {
                // The first one is the file's; others are of its properties.
                "href" if file.href.is_empty() => file.href = text.trim().to_owned(),
                "calendar-data" => file.data = std::mem::take(&mut text),
                "multistatus" => is_list = true,
                "response" if !file.data.is_empty() => files.push(std::mem::take(&mut file)),
                _ => {}
            },
            Event::Empty(empty) => is_list |= empty.local_name().as_ref() == "multistatus",
            Event::Eof => return is_list.then_some(files),
            _ => {}
        }
    }
}

/// The character of a reference such as `&amp;` or `&#13;`.
fn entity_text(reference: &BytesRef<'_>) -> Option<String> {
    match reference.resolve_char_ref().ok()? {
        Some(sign) => Some(sign.to_string()),
        None => resolve_xml_entity(&reference.xml10_content()).map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read_with_any_prefix_and_what_is_no_xml_is_refused() {
        let xml = r#"<?xml version="1.0"?><multistatus xmlns="DAV:" xmlns:CAL="urn:x">
            <response><href>/a/1.ics</href><propstat><prop><getetag>"x"</getetag>
            <CAL:calendar-data>BEGIN:VCALENDAR&#13;
SUMMARY:A &amp; B &lt;C&gt;</CAL:calendar-data></prop></propstat></response>
            <response><href>/a/</href><status>HTTP/1.1 404 Not Found</status></response>
            <response><href>/a/2.ics</href><CAL:calendar-data><![CDATA[X<Y]]></CAL:calendar-data>
            </response></multistatus>"#;
        let file = |href: &str, data: &str| ListedFile { href: href.into(), data: data.into() };
        let first = file("/a/1.ics", "BEGIN:VCALENDAR\r\nSUMMARY:A & B <C>");
        assert_eq!(read_files(xml), Some(vec![first, file("/a/2.ics", "X<Y")]));
        assert_eq!(read_files("<multistatus/>"), Some(Vec::new()));
        for bad in ["", "not XML", "<a><b></a>", "<a>&nothing;</a>", "<html><p>Sign in", "<a/>"] {
            assert_eq!(read_files(bad), None, "{bad}");
        }
    }
}
