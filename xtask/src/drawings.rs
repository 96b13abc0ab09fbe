//! The drawings of the documents: the path of a call, and what a plugin can do.
//!
//! Code draws them so that a wording changes in one line, both colour schemes follow, and `cargo
//! xtask check` notices a file that was changed by hand.

use std::fs;

use anyhow::{Context, Result, bail, ensure};

use crate::process::repository_root;

/// Folder of the drawings.
const FOLDER: &str = "docs/images";

/// Width of every drawing, in pixels. Pages show the letters at the size of their own text.
const WIDTH: i32 = 700;

/// Length of the head of an arrow, and half its breadth.
const HEAD: (i32, i32) = (8, 4);

/// The colours, with a background of their own: an image cannot read the colours of its page.
const STYLE: &str = "\
text { font: 12px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; }
text { fill: #1f2328; text-anchor: middle; }
.head { font-size: 13px; font-weight: 600; }
.note { fill: #57606a; }
.refusal { fill: #cf222e; }
.start { text-anchor: start; }
.end { text-anchor: end; }
.page { fill: #f6f8fa; stroke: #d0d7de; }
.plain { fill: #ffffff; stroke: #57606a; }
.gate { fill: #ddf4ff; stroke: #0969da; }
.open { fill: #dafbe1; stroke: #1a7f37; }
.way { fill: none; stroke: #57606a; stroke-width: 1.5; }
.tip { fill: #57606a; }
.way.denied { stroke: #cf222e; stroke-dasharray: 5 4; }
.tip.denied { fill: #cf222e; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; }
.note { fill: #9da7b3; }
.refusal { fill: #ff7b72; }
.page { fill: #161b22; stroke: #30363d; }
.plain { fill: #0d1117; stroke: #8b949e; }
.gate { fill: #0c2d4d; stroke: #58a6ff; }
.open { fill: #12311c; stroke: #3fb950; }
.way { stroke: #9da7b3; }
.tip { fill: #9da7b3; }
.way.denied { stroke: #ff7b72; }
.tip.denied { fill: #ff7b72; }
}
";

/// A point, or a size, in pixels.
type Point = (i32, i32);

/// A drawing. Its text contains no character that XML reserves.
struct SvgDrawing {
    file: &'static str,
    title: &'static str,
    about: &'static str,
    height: i32,
    body: String,
}

/// Writes the drawings, or compares them with the files.
pub(crate) fn update_drawings(args: &[String]) -> Result<()> {
    match args {
        [] => all_drawings().iter().try_for_each(write_drawing),
        [flag] if flag == "--check" => check_drawings(),
        _ => bail!("drawings knows --check and nothing else"),
    }
}

/// Fails if a file differs from the drawing made here.
pub(crate) fn check_drawings() -> Result<()> {
    for drawing in all_drawings() {
        let path = repository_root().join(FOLDER).join(drawing.file);
        let is_current = fs::read_to_string(path).is_ok_and(|text| text == drawing.to_svg());
        ensure!(is_current, "{FOLDER}/{} is not current; run `cargo xtask drawings`", drawing.file);
    }
    Ok(())
}

fn write_drawing(drawing: &SvgDrawing) -> Result<()> {
    let folder = repository_root().join(FOLDER);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(drawing.file), drawing.to_svg())
        .with_context(|| format!("cannot write {FOLDER}/{}", drawing.file))
}

fn all_drawings() -> [SvgDrawing; 2] {
    [draw_call(), draw_grant()]
}

/// The path of a call, from the model and back.
fn draw_call() -> SvgDrawing {
    let mut drawing = SvgDrawing::new(
        "call.svg",
        "The way of a tool call",
        "The model writes a call. The session hands it to the gate. The gate decides by your \
         policy, asks you if the policy asks, and records the decision. A denied call does not \
         run. An allowed call runs in a sandbox, in a fresh instance of the plugin, and the gate \
         checks each of its host calls: files, HTTP, secrets. The outcome goes back to the session \
         and the model, and the call is recorded too.",
        336,
    );
    drawing.add_rect("plain", (20, 68), (96, 84));
    drawing.add_column((68, 100), &[("head", "model"), ("note", "writes"), ("note", "a call")]);
    drawing.add_rect("plain", (149, 68), (96, 84));
    let session = [("head", "session"), ("note", "keeps the"), ("note", "conversation")];
    drawing.add_column((197, 100), &session);
    drawing.add_rect("gate", (278, 24), (200, 196));
    drawing.add_text("head", (378, 46), "gate");
    for (y, head, note) in [
        (60, "decision", "by your policy"),
        (110, "approval", "by you, if the policy asks"),
        (160, "audit record", "of the decision"),
    ] {
        drawing.add_rect("plain", (290, y), (176, 44));
        drawing.add_column((378, y + 19), &[("head", head), ("note", note)]);
    }
    drawing.add_rect("open", (511, 24), (169, 196));
    drawing.add_text("head", (595, 46), "sandbox");
    for (y, head, note) in
        [(60, "plugin", "a fresh instance"), (142, "each host call", "checked by the gate")]
    {
        drawing.add_rect("plain", (523, y), (145, 62));
        drawing.add_column((595, y + 27), &[("head", head), ("note", note)]);
    }
    drawing.add_text("note", (132, 86), "call");
    drawing.add_arrow("allowed", &[(116, 93), (149, 93)]);
    drawing.add_arrow("allowed", &[(245, 93), (278, 93)]);
    drawing.add_arrow("allowed", &[(478, 93), (511, 93)]);
    drawing.add_arrow("allowed", &[(595, 122), (595, 142)]);
    drawing.add_arrow("allowed", &[(607, 220), (607, 242)]);
    drawing.add_text("note", (607, 259), "files, HTTP, secrets");
    drawing.add_arrow("denied", &[(378, 220), (378, 280)]);
    drawing.add_text("refusal start", (388, 254), "denied: does not run");
    drawing.add_arrow("allowed", &[(525, 220), (525, 280), (197, 280), (197, 152)]);
    drawing.add_arrow("allowed", &[(149, 127), (116, 127)]);
    let outcome = [
        ("head", "outcome: result, error, refusal or timeout"),
        ("note", "the call leaves an audit record too"),
    ];
    drawing.add_column((361, 302), &outcome);
    drawing
}

/// What a plugin can do: whatever is both requested and granted.
fn draw_grant() -> SvgDrawing {
    let mut drawing = SvgDrawing::new(
        "grant.svg",
        "What a plugin can do",
        "Two areas overlap. The left one is what the plugin's manifest requests, the right one is \
         what your policy grants. A plugin can do only what is in both. What is only requested is \
         refused. What is only granted has no effect. A deny entry of the policy takes away from \
         the overlap.",
        286,
    );
    drawing.add_text("head start", (20, 34), "plugin.toml requests");
    drawing.add_text("head end", (680, 50), "policy.toml grants");
    drawing.add_rect("plain", (20, 44), (430, 160));
    drawing.add_rect("gate", (250, 60), (430, 160));
    drawing.add_rect("open", (250, 60), (200, 144));
    let parts = [
        (135, "requested only", "POST https://api.example/**", "a folder, read-write"),
        (350, "requested and granted", "GET https://api.example/**", "the variable TZ"),
        (565, "granted only", "GET https://other.example/**", "the variable HOME"),
    ];
    for (x, head, first, second) in parts {
        drawing.add_text("head", (x, 88), head);
        drawing.add_column((x, 120), &[("item", first), ("item", second)]);
    }
    drawing.add_text("refusal", (135, 180), "refused");
    drawing.add_text("head", (350, 180), "the plugin can use it");
    drawing.add_text("note", (565, 180), "no effect");
    let below = [
        ("note", "A deny entry of the policy takes away from the middle."),
        ("note", "Always there: computing, clocks, random numbers, log lines, its own settings."),
    ];
    drawing.add_column((350, 246), &below);
    drawing
}

impl SvgDrawing {
    fn new(file: &'static str, title: &'static str, about: &'static str, height: i32) -> Self {
        let mut drawing = Self { file, title, about, height, body: String::new() };
        drawing.add_rect("page", (1, 1), (WIDTH - 2, height - 2));
        drawing
    }

    fn add_rect(&mut self, class: &str, (x, y): Point, (width, height): Point) {
        let size = format!("width=\"{width}\" height=\"{height}\" rx=\"8\"");
        self.add_line(&format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" {size}/>"));
    }

    fn add_text(&mut self, class: &str, (x, y): Point, words: &str) {
        self.add_line(&format!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{words}</text>"));
    }

    /// Lines of text below one another, each with its class.
    fn add_column(&mut self, (x, y): Point, lines: &[(&str, &str)]) {
        for ((class, words), below) in lines.iter().zip(0..) {
            self.add_text(class, (x, y + 17 * below), words);
        }
    }

    /// An arrow along points. Each segment is horizontal or vertical.
    fn add_arrow(&mut self, class: &str, points: &[Point]) {
        let [way @ .., before, tip] = points else { return };
        let (right, down) = ((tip.0 - before.0).signum(), (tip.1 - before.1).signum());
        let (length, breadth) = HEAD;
        let neck = (tip.0 - length * right, tip.1 - length * down);
        let sides = [breadth, -breadth].map(|far| (neck.0 + far * down, neck.1 + far * right));
        let line = svg_points(&[way, &[*before, neck]].concat());
        self.add_line(&format!("<polyline class=\"way {class}\" points=\"{line}\"/>"));
        let head = svg_points(&[*tip, sides[0], sides[1]]);
        self.add_line(&format!("<polygon class=\"tip {class}\" points=\"{head}\"/>"));
    }

    fn add_line(&mut self, line: &str) {
        self.body.push_str(line);
        self.body.push('\n');
    }

    fn to_svg(&self) -> String {
        let Self { title, about, height, body, .. } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-labelledby=\"title about\">\n\
             <!-- Written by `cargo xtask drawings`. -->\n\
             <title id=\"title\">{title}</title>\n\
             <desc id=\"about\">{about}</desc>\n\
             <style>\n{STYLE}</style>\n\
             {body}</svg>\n"
        )
    }
}

/// Points in the notation of SVG.
fn svg_points(points: &[Point]) -> String {
    let points: Vec<String> = points.iter().map(|(x, y)| format!("{x},{y}")).collect();
    points.join(" ")
}
