//! Text from a log for a terminal: it moves no cursor, begins no line and turns no direction.

/// `text` in one line. A line break or a tab is a space; each other letter that a terminal obeys or
/// does not show is its number.
pub(super) fn line(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' | '\r' | '\t' => safe.push(' '),
            _ if is_harmful(letter) => safe.extend(letter.escape_unicode()),
            _ => safe.push(letter),
        }
    }
    safe
}

/// The same JSON, with these letters as its own escapes: they are in strings alone.
pub(super) fn json(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_harmful(letter) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                safe.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            safe.push(letter);
        }
    }
    safe
}

/// Controls (C0, C1, DEL), and what Unicode has for directions, line ends, and nothing visible.
/// Source: Unicode's classes Cc, Cf, Zl and Zp, as far as a terminal heeds them.
fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
        || matches!(letter, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_terminal_obeys_nothing_of_it() {
        let text = "a\u{1b}[2Jb\nc\u{9b}31md\u{202e}e\u{2066}f\u{2028}g\u{e0041}h\u{7f}\u{e9}";
        assert_eq!(
            super::line(text),
            "a\\u{1b}[2Jb c\\u{9b}31md\\u{202e}e\\u{2066}f\\u{2028}g\\u{e0041}h\\u{7f}\u{e9}"
        );
        let json = serde_json::to_string(text).map(|json| super::json(&json)).unwrap_or_default();
        assert!(json.chars().all(|letter| !super::is_harmful(letter)), "{json}");
        assert!(json.contains("\\u009b31m") && json.contains("\\udb40\\udc41"), "{json}");
        assert_eq!(
            serde_json::from_str::<String>(&json).ok().as_deref(),
            Some(text),
            "the value is the same"
        );
    }
}
