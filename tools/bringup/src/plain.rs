//! Text from a machine, before a terminal gets it.

/// The letters of a process's name: any program may give itself another (`PR_SET_NAME`, 16 bytes).
pub(crate) const COMM_MAX: usize = 16;

/// A text of `text`'s printable letters, of at most `most` of them; each other one is escaped.
///
/// A copied machine may have anything in its files: a name of a process or of a rail could move
/// the cursor, or turn the direction of writing. Everything that is not ASCII is escaped, since the
/// kernel's own words are.
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
