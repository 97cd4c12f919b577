//! Makes text from a machine safe for a terminal.

/// The letters of a process's name, which any program may choose (`PR_SET_NAME`, 16 bytes).
pub(crate) const COMM_MAX: usize = 16;

/// The printable letters of `text`, at most `most` of them; each other letter is escaped.
///
/// A copied machine may have anything in its files: the name of a process or a rail could move the
/// cursor, or change the writing direction. Everything that is not ASCII is escaped, because the
/// kernel's own words are ASCII.
#[must_use]
pub fn plain(text: &str, most: usize) -> String {
    let mut letters = text.chars();
    let mut plain = String::new();
    for letter in letters.by_ref().take(most) {
        if letter == ' ' || letter.is_ascii_graphic() {
            plain.push(letter);
        } else {
            plain.extend(letter.escape_default());
        }
    }
    if letters.next().is_some() {
        plain += " ...";
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(plain("0.85 V", 10), "0.85 V");
        assert_eq!(plain("a\u{1b}[2J\n\u{9b}\u{202e}b", 10), "a\\u{1b}[2J\\n\\u{9b}\\u{202e}b");
        assert_eq!(plain("abcdef", 3), "abc ...");
    }
}
