//! Paragraphs of plain text or Markdown, and their sentences.

/// A sentence of a paragraph: its line, its text, and its words, where a code span is one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sentence {
    pub(crate) line: usize,
    pub(crate) text: String,
    pub(crate) words: usize,
}

const ABBREVIATIONS: [&str; 9] = ["e.g", "i.e", "cf", "vs", "no", "fig", "sec", "p", "pp"];
const CLAUSES: [&str; 4] = ["what", "whatever", "whoever", "whichever"];

/// Paragraphs, items of lists, headings with their `#`, and the cells of tables; no code block.
pub(crate) fn paragraphs(lines: &[(usize, String)]) -> Vec<Vec<(usize, &str)>> {
    let mut found = vec![Vec::new()];
    let mut is_code = false;
    for (at, text) in lines {
        let text = text.trim_start_matches([' ', '\t', '>']);
        if text.starts_with("```") {
            is_code = !is_code;
            found.push(Vec::new());
        } else if is_code || (text.starts_with('[') && text.contains("]: ")) || (text.starts_with('<') && text.ends_with('>')) {
            // A program, where a link leads, or HTML.
        } else if text.starts_with('|') {
            found.extend(text.split('|').map(|cell| vec![(*at, cell)]));
        } else {
            let (mark, rest) = text.split_once(' ').unwrap_or((text, ""));
            let number = mark.trim_start_matches(|letter: char| letter.is_ascii_digit());
            let is_item = ["*", "+"].contains(&mark)
                || mark.starts_with('-')
                || (number.len() < mark.len() && [".", ")"].contains(&number))
                || mark.starts_with('@');
            let is_first = |last: &Vec<(usize, &str)>| last.last().is_some_and(|(_, text)| text.starts_with('#'));
            // Columns are a table too.
            if is_item
                || text.is_empty()
                || text.contains("   ")
                || text.contains('\t')
                || text.starts_with('#')
                || found.last().is_some_and(is_first)
            {
                found.push(Vec::new());
            }
            found.last_mut().unwrap().push((*at, if is_item { rest } else { text }));
        }
    }
    found
}

pub(crate) fn sentences(paragraph: &[(usize, &str)]) -> Vec<Sentence> {
    let mut ticks = paragraph.iter().map(|(_, text)| text.matches('`').count()).sum::<usize>() & !1;
    let mut found = vec![Sentence::default()];
    for (line, word) in paragraph.iter().flat_map(|(line, text)| text.split_whitespace().map(move |word| (*line, word))) {
        let sentence = found.last_mut().unwrap();
        if sentence.text.is_empty() {
            sentence.line = line;
        } else {
            sentence.text.push(' ');
        }
        sentence.text.push_str(word);
        let counts = ticks % 2 == 0 && word.contains(|letter: char| letter.is_alphanumeric() || "{%`".contains(letter));
        sentence.words += usize::from(counts);
        ticks = ticks.saturating_sub(word.matches('`').count());
        let bare = word.trim_end_matches([')', '"', '\'', '*', '_', '”', '’', '»']);
        let stem = bare.trim_end_matches('.').trim_start_matches(['(', '"']).to_lowercase();
        if ticks % 2 == 0 && bare.ends_with(['.', '!', '?']) && !bare.ends_with("..") && !ABBREVIATIONS.contains(&stem.as_str()) {
            found.push(Sentence::default());
        }
    }
    found.retain(|sentence| sentence.words > 0);
    found
}

impl Sentence {
    /// Its subject, or the one after a semicolon, is a clause. It is no question and no heading.
    pub(crate) fn has_clause_as_subject(&self) -> bool {
        let text = self.text.to_lowercase();
        let begins = |part: &str| {
            let mut words = part.split_whitespace().map(|word| word.trim_start_matches(|letter: char| !letter.is_alphanumeric()));
            words.find(|word| !["and", "but", "so", ""].contains(word)).is_some_and(|word| CLAUSES.contains(&word))
        };
        self.words > 3 && !text.ends_with('?') && !text.starts_with('#') && text.split("; ").any(begins)
    }
}

#[cfg(test)]
mod tests {
    use super::{paragraphs, sentences};
    use crate::extract::{pieces, syntax};
    use std::path::Path;

    /// Each sentence of `text`: its line, its words, and whether its subject is a clause.
    fn read(name: &str, text: &str) -> Vec<(usize, usize, bool)> {
        let pieces = pieces(text, syntax(Path::new(name), text).unwrap());
        let found = pieces.iter().flat_map(|piece| paragraphs(&piece.lines)).flat_map(|paragraph| sentences(&paragraph));
        found.map(|sentence| (sentence.line, sentence.words, sentence.has_clause_as_subject())).collect()
    }

    #[test]
    fn a_page_has_its_sentences() {
        let page = include_str!("samples.txt");
        let (expected, page) = page.split_once("\n\n").unwrap();
        let found = read("a.md", page).into_iter().map(|(line, words, clause)| format!("{line}:{words}{}", if clause { "!" } else { "" }));
        assert_eq!(found.collect::<Vec<_>>().join(" "), expected);
    }

    #[test]
    fn code_has_its_comments_and_literals() {
        let rust = "/// One two.\n/// Three\nfn f<'a>(c: char) { f('\"'); // four\n g(\"five, six \\\"or\\\" \\\n  seven.\\nEight\"); }\n/* nine\n * ten */";
        assert_eq!(read("a.rs", rust), [(1, 2, false), (2, 1, false), (3, 1, false), (4, 4, false), (5, 1, false), (6, 2, false)]);
        assert_eq!(read("a.rs", "f(\"one two three four\", \"#[x] {} () => [] five\");"), []);
        assert_eq!(
            read("a.py", "'''One\ntwo three four five.'''\nx = ('six seven '\n  f'eight nine ten') # last\n"),
            [(1, 5, false), (3, 5, false), (4, 1, false)]
        );
        assert_eq!(read("a.sh", "#!/bin/sh\necho '# no' # no\n  # yes, it is\n"), [(3, 3, false)]);
    }
}
