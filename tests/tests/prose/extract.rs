//! The texts of a file that people read, with their line numbers.

use std::path::Path;

/// How a text of each kind begins and ends; a literal begins with a quote at its end.
pub(crate) type Syntax = &'static [(&'static str, &'static str)];

const PAGE: Syntax = &[("", "\0")];
const RUST: Syntax =
    &[("'\"'", ""), ("'\\\"'", ""), ("///", "\n"), ("//!", "\n"), ("//", "\n"), ("/*", "*/"), ("r#\"", "\"#"), ("r\"", "\""), ("\"", "\"")];
const PYTHON: Syntax = &[("#", "\n"), ("\"\"\"", "\"\"\""), ("'''", "'''"), ("\"", "\""), ("'", "'")];
/// Only comments that are alone on their line: the quotes of a heredoc do not pair.
const SHELL: Syntax = &[("#", "\n")];

pub(crate) fn syntax(path: &Path, text: &str) -> Option<Syntax> {
    let first = text.lines().next().unwrap_or_default();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("md") => Some(PAGE),
        Some("rs" | "c" | "h" | "dts" | "dtso") => Some(RUST),
        Some("py" | "pyi" | "toml") => Some(PYTHON),
        Some("sh" | "conf" | "config" | "rules") => Some(SHELL),
        None if first.starts_with("#!") && first.contains("python") => Some(PYTHON),
        None if first.starts_with('#') => Some(SHELL),
        _ => None,
    }
}

/// Comments of one kind on lines that follow each other, literals side by side, or a whole page.
pub(crate) struct Piece {
    open: &'static str,
    /// The first line that has no code before the text.
    pub(crate) own: usize,
    pub(crate) lines: Vec<(usize, String)>,
}

pub(crate) fn pieces(text: &str, syntax: Syntax) -> Vec<Piece> {
    let mut found: Vec<Piece> = Vec::new();
    // The line that says how a script is run is no comment.
    let first = if text.starts_with("#!/") { text.find('\n').unwrap_or(text.len()) } else { 0 };
    let (mut at, mut line, mut end) = (first, 1, first);
    while let Some(letter) = text[at..].chars().next() {
        let alone = text[..at].rsplit('\n').next().unwrap().trim().is_empty();
        let token = syntax.iter().find(|(open, _)| text[at..].starts_with(open)).filter(|_| alone || syntax.len() > 1);
        let Some((open, close)) = token else {
            line += usize::from(letter == '\n');
            at += letter.len_utf8();
            continue;
        };
        let gap = text[end..at].trim_matches([' ', 'f']);
        let is_literal = open.ends_with(['"', '\'']);
        let start = at + open.len();
        end = start;
        while !text[end..].starts_with(close) && end < text.len() {
            let escapes = is_literal && !open.starts_with('r') && text[end..].starts_with('\\');
            end += text[end..].chars().take(1 + usize::from(escapes)).map(char::len_utf8).sum::<usize>();
        }
        let joins = |last: &Piece| last.open == *open && if is_literal { gap.trim().is_empty() } else { gap == "\n" && last.own < line };
        if !found.last().is_some_and(joins) {
            let own = if alone && (!is_literal || open.len() == 3) { line } else { line + 1 };
            found.push(Piece { open, own, lines: Vec::new() });
        }
        for (row, said) in text[start..end].split('\n').enumerate() {
            let said = if is_literal { said.trim_end_matches('\\').replace("\\\"", "\"") } else { said.to_owned() };
            let said = said.trim_start().trim_start_matches(if *open == "/*" { "*" } else { "\0" });
            // A line's end within a literal ends a paragraph.
            let parts = said.split("\\n").flat_map(|part| [(line + row, String::new()), (line + row, part.to_owned())]);
            found.last_mut().unwrap().lines.extend(parts.skip(1));
        }
        line += text[at..end].matches('\n').count();
        end += if *close == "\n" { 0 } else { close.len().min(text.len() - end) };
        at = end;
    }
    found.retain(|piece| !piece.open.ends_with(['"', '\'']) || reads_as_prose(&piece.lines));
    found
}

/// Prose, and no table, program or file name: five words, and four of five in letters.
fn reads_as_prose(lines: &[(usize, String)]) -> bool {
    let words: Vec<_> = lines.iter().flat_map(|(_, text)| text.split_whitespace()).collect();
    let plain = |word: &&&str| {
        let word = word.trim_matches(|letter: char| ".,:;?!()'\"`…".contains(letter));
        let plain = !word.is_empty() && word.chars().all(|letter| letter.is_alphanumeric() || "-'’_/.".contains(letter));
        plain || (word.starts_with('{') && word.ends_with('}'))
    };
    words.len() >= 5 && words.iter().filter(plain).count() * 5 >= words.len() * 4
}
