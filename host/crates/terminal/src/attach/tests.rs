//! Tests of mentions and of reading the files.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
};

use super::*;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\nrest";

/// Files in memory. A name that ends with a slash is a folder.
struct Pretended(BTreeMap<&'static str, Vec<u8>>);

impl FileSource for Pretended {
    fn path_kind(&self, path: &Path) -> PathKind {
        let name = path.to_str().unwrap();
        match (self.0.contains_key(name), self.0.contains_key(format!("{name}/").as_str())) {
            (true, _) => PathKind::File,
            (_, true) => PathKind::Folder,
            _ if name == "pipe" => PathKind::Other,
            _ => PathKind::Missing,
        }
    }

    fn read_file(&self, path: &Path, bytes_max: u64) -> io::Result<Vec<u8>> {
        let name = path.to_str().unwrap();
        let bytes = self.0.get(name).ok_or(io::ErrorKind::PermissionDenied)?;
        Ok(bytes.iter().copied().take(usize::try_from(bytes_max).unwrap()).collect())
    }
}

fn files() -> Pretended {
    Pretended(BTreeMap::from([
        ("a.md", b"# a".to_vec()),
        ("two words.txt", b"two".to_vec()),
        ("it's", b"odd".to_vec()),
        ("wow!", b"wow".to_vec()),
        ("src/", Vec::new()),
        ("src/main.rs", b"fn main() {}".to_vec()),
        ("p.png", PNG.to_vec()),
        ("empty", Vec::new()),
        ("zeros", vec![0; 100]),
        ("w.wav", b"RIFF1234WAVEfmt ".to_vec()),
        ("m.mp3", vec![0xff, 0xfb, 0x90, 0x00]),
        ("long.txt", vec![b'x'; (512 << 10) + 1]),
        ("huge.txt", vec![b'x'; 20 << 20]),
        ("huge.wav", [b"RIFF1234WAVE".as_slice(), &vec![0; 20 << 20]].concat()),
        ("big1.wav", [b"RIFF1234WAVE".as_slice(), &vec![0; 8 << 20]].concat()),
        ("big2.wav", [b"RIFF1234WAVE".as_slice(), &vec![1; 8 << 20]].concat()),
    ]))
}

/// The line's text, its files, and the words that are not files.
#[track_caller]
fn check(line: &str, text: &str, paths: &[&str], told: &[&str]) {
    let found = find_mentions(line, &files());
    assert_eq!(found.text, text, "{line:?}");
    let found_paths: Vec<_> = found.files.iter().map(|file| file.to_str().unwrap()).collect();
    assert_eq!(found_paths, paths, "{line:?}");
    assert_eq!(found.notes, told, "{line:?}");
}

#[track_caller]
fn check_same(line: &str, paths: &[&str], told: &[&str]) {
    check(line, line, paths, told);
}

#[test]
fn mentions_are_found_where_a_word_begins() {
    check_same("no file here", &[], &[]);
    check_same("@a.md", &["a.md"], &[]);
    check_same("see @a.md and @src/main.rs", &["a.md", "src/main.rs"], &[]);
    check_same("see @a.md, please", &["a.md"], &[]);
    check_same("is it (@a.md)?", &["a.md"], &[]);
    check_same("@a.md?!", &["a.md"], &[]);
    check_same("so @wow!", &["wow!"], &[]);
    check_same("\"@a.md\"", &["a.md"], &[]);
    check_same("one\n@a.md\ntwo", &["a.md"], &[]);
    check_same("@\"two words.txt\" now", &["two words.txt"], &[]);
    check_same("@'two words.txt', now", &["two words.txt"], &[]);
    check_same("@two\\ words.txt now", &["two words.txt"], &[]);
    check_same("@\"it's\" @'it\\'s'", &["it's", "it's"], &[]);
}

#[test]
fn what_is_no_file_stays_text_and_is_told() {
    check_same("mail me@a.md", &[], &[]);
    check_same("a @ b @", &[], &[]);
    check_same("@\"never closed a.md", &[], &[]);
    check_same("ask @alice, please", &[], &["@alice,: no such file"]);
    check_same("@src", &[], &["@src: a folder, not a file"]);
    check_same("@pipe", &[], &["@pipe: not a regular file"]);
    check_same("@\u{1b}[2J", &[], &["@\\u{1b}[2J: no such file"]);
    check("\\@a.md and \\@b", "@a.md and @b", &[], &[]);
    check_same("C:\\x\\@a.md", &[], &[]);
    check_same("@é@é.", &[], &["@é@é.: no such file"]);
    check_same("@a\\.\\.\\", &[], &["@a\\.\\.\\: no such file"]);
}

#[test]
fn a_flood_of_marks_is_not_looked_up() {
    let line = "@x ".repeat(10_000);
    let found = find_mentions(&line, &files());
    assert_eq!((found.text, found.notes.len()), (line, 256));
    let line = format!("@a.md{}", "!".repeat(1000));
    assert!(find_mentions(&line, &files()).files.is_empty());
}

#[test]
fn kinds_are_told_by_their_bytes() {
    let rows: [(&str, &[u8], Option<&str>); 20] = [
        ("x.png", PNG, Some("image/png")),
        ("x.jpg", PNG, Some("image/png")),
        ("x", b"\xff\xd8\xff\xe0", Some("image/jpeg")),
        ("x", b"GIF89a", Some("image/gif")),
        ("x", b"GIF87a", Some("image/gif")),
        ("x", b"GIF8xa", Some("text/plain")),
        ("x", b"RIFF\x01\0\0\0WEBPVP8 ", Some("image/webp")),
        ("x", b"RIFF\x01\0\0\0WAVEfmt ", Some("audio/wav")),
        ("x", b"RIFF\x01\0\0\0AVI ", None),
        ("x", b"fLaC\0", Some("audio/flac")),
        ("x", b"OggS\0", Some("audio/ogg")),
        ("x", b"ID3\x04\0", Some("audio/mpeg")),
        ("x.MP3", b"\xff\xfb\x90\0", Some("audio/mpeg")),
        ("x.bin", b"\xff\xfb\x90\0", None),
        ("x.png", b"just text", Some("text/plain")),
        ("x.md", b"# text", Some("text/markdown")),
        ("x.CSV", b"a,b", Some("text/csv")),
        ("x.json", "{\"é\":1}".as_bytes(), Some("text/plain")),
        ("x.txt", b"latin \xe9 text", None),
        ("x.pdf", b"%PDF-1.7\0", None),
    ];
    for (name, bytes, want) in rows {
        assert_eq!(
            detect_media(Path::new(name), bytes).map(MediaKind::media_type),
            want,
            "{name} {bytes:?}"
        );
    }
}

#[test]
fn a_file_is_read_with_its_name_and_kind() {
    let attached = attach_file(&files(), Path::new("src/main.rs")).unwrap();
    assert_eq!((attached.name.as_str(), attached.media_type), ("main.rs", "text/plain"));
    assert_eq!(attached.data, b"fn main() {}");
    let sound = attach_audio(&files(), Path::new("m.mp3")).unwrap();
    assert_eq!(sound.media_type, "audio/mpeg");
}

#[track_caller]
fn check_error<T: std::fmt::Debug>(result: Result<T, AttachError>, message: &str, hint: &str) {
    let error = result.unwrap_err();
    assert_eq!(error.to_string(), message);
    assert!(error.hint().contains(hint), "{}", error.hint());
}

#[test]
fn what_cannot_be_attached_is_refused_with_a_reason() {
    let try_file = |name: &str| attach_file(&files(), Path::new(name));
    check_error(try_file("none\n"), "there is no file none\\n", "~/");
    check_error(try_file("src"), "src is a folder", "files in it");
    check_error(try_file("pipe"), "pipe is not a regular file", "copy");
    check_error(try_file("empty"), "empty is empty", "not empty");
    check_error(try_file("zeros"), "zeros has a type that no model accepts", "UTF-8");
    let texts = "long.txt is too large: texts may have up to 524288 bytes";
    check_error(try_file("long.txt"), texts, "part that matters");
    let texts = "huge.txt is too large: texts may have up to 524288 bytes";
    check_error(try_file("huge.txt"), texts, "part that matters");
    let sounds = "huge.wav is too large: sounds may have up to 15728640 bytes";
    check_error(try_file("huge.wav"), sounds, "smaller");
    let no_sound = "p.png is not a sound file: it is image/png";
    check_error(attach_audio(&files(), Path::new("p.png")), no_sound, "MP3");
}

#[test]
fn the_files_of_a_message_are_bounded_together() {
    let all = |line: &str| attach_files(&files(), &find_mentions(line, &files()).files);
    let names = |line: &str| all(line).unwrap().into_iter().map(|a| a.name).collect::<Vec<_>>();
    assert_eq!(names("@a.md @p.png @a.md"), ["a.md", "p.png"]);
    let together = "the files of one message may have up to 15728640 bytes together";
    check_error(all("@big1.wav @big2.wav"), together, "several messages");
    let many: Vec<_> = (0..33).map(|n| PathBuf::from(n.to_string())).collect();
    let too_many = "one message may have up to 32 files";
    check_error(attach_files(&files(), &many), too_many, "several");
}

#[test]
fn a_letter_that_is_cut_at_the_limit_does_not_make_a_text_binary() {
    let text = "é".repeat(16 << 20).into_bytes();
    let files = Pretended(BTreeMap::from([("é.txt", [b"x".as_slice(), &text].concat())]));
    let error = attach_file(&files, Path::new("é.txt")).unwrap_err();
    assert!(matches!(error, AttachError::TooLarge { .. }), "{error}");
}

#[test]
fn the_disk_is_read_below_a_folder_and_the_home() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("x.txt"), "words").unwrap();
    let here = LocalFiles { folder: folder.path().to_owned(), home: None };
    let home = LocalFiles { folder: "/nowhere".into(), home: Some(folder.path().to_owned()) };
    for (disk, path) in [(&here, "x.txt"), (&home, "~/x.txt")] {
        assert_eq!(attach_file(disk, Path::new(path)).unwrap().data, b"words");
    }
    assert_eq!(here.path_kind(Path::new("/dev/null")), PathKind::Other);
    assert_eq!(here.path_kind(Path::new(".")), PathKind::Folder);
    assert_eq!(here.path_kind(Path::new("~/x.txt")), PathKind::Missing);
    assert_eq!(home.resolve_path(Path::new("/abs")), PathBuf::from("/abs"));
}
