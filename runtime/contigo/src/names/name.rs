//! The part that names of memory and of devices share: each is a text, read by a table.

/// `FromStr` of a name by its table of kinds, its row there, and its text for everything else.
macro_rules! is_text {
    ($name:ident, $rows:ident, $form:expr) => {
        impl $name {
            /// The kind: what stands before the first colon.
            #[must_use]
            pub const fn kind(&self) -> &'static str {
                self.row.kind
            }

            /// One sentence about its kind.
            #[must_use]
            pub const fn help(&self) -> &'static str {
                self.row.help
            }
        }

        impl core::str::FromStr for $name {
            type Err = super::NameError;

            fn from_str(text: &str) -> Result<Self, super::NameError> {
                let kind = super::grammar::kind(text);
                let Some(row) = $rows.iter().find(|row| row.kind == kind) else {
                    return Err(super::NameError {
                        rule: super::NameRule::Kind,
                        at: 0,
                        len_bytes: text.len(),
                        form: $form,
                    });
                };
                Ok(Self { parsed: super::grammar::parse(text, row.argument, row.syntax)?, row })
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.text())
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_tuple(stringify!($name)).field(&self.text()).finish()
            }
        }

        impl PartialEq for $name {
            fn eq(&self, other: &Self) -> bool {
                self.parsed == other.parsed
            }
        }

        impl Eq for $name {}
    };
}
pub(super) use is_text;
