//! The macro behind `rows.rs`.

/// Makes the enum and all that depends on its rows.
///
/// A row is `Variant(code NAME Class errno) { fields } text`. `errno` is an expression over the
/// fields; so is each `let` before the text. `Debug` shows a field `as hex` or `as register` so.
macro_rules! errors {
    ($($(#[doc = $section:literal])* $kind:ident {$(
        $(#[doc = $about:literal])*
        $variant:ident($code:literal $name:ident $class:ident $errno:expr) $({
            $($(#[doc = $told:literal])* $field:ident: $type:ty $(as $shown:ident)?,)*
        })?
        $(let $local:ident = $made:expr;)* $text:literal;
    )*})*) => {
        /// Why something was refused or failed, with its numbers.
        ///
        /// A person reads its text, which says how to go on. A program asks for
        /// [`kind`](Self::kind) and [`errno`](Self::errno), or names the variant.
        #[derive(Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(feature = "defmt", derive(defmt::Format))]
        #[non_exhaustive]
        pub enum Error {$($(
            $(#[doc = $about])*
            $variant $({$($(#[doc = $told])* $field: $type,)*})?,
        )*)*}

        impl Error {
            /// All rows, in the table's order.
            pub const ROWS: &'static [ErrorRow] = &[$($(
                errors!(@row $kind $code $name $class),
            )*)*];

            /// Each row's variant, errno, documentation and text, for C's header and the page of
            /// errors.
            #[doc(hidden)]
            pub const ABOUT: &'static [(
                &'static str, &'static str, &'static [&'static str], &'static str,
            )] = &[$($(
                (stringify!($variant), stringify!($errno), &[$($about),*], $text),
            )*)*];

            /// The row: C's number and name, and the kind.
            #[must_use]
            pub const fn row(&self) -> &'static ErrorRow {
                match *self {$($(
                    Self::$variant { .. } => &errors!(@row $kind $code $name $class),
                )*)*}
            }

            /// Where the cause lies.
            #[must_use]
            pub const fn kind(&self) -> ErrorKind {
                self.row().kind
            }

            /// The number of `errno(3)` for functions that answer with one: the kernel's where a
            /// system call failed, otherwise the nearest. Linux's numbers, on every system.
            #[must_use]
            #[allow(unused_variables, reason = "most rows have one number for all of their fields")]
            pub const fn errno(&self) -> i32 {
                match *self {$($(Self::$variant $({ $($field),* })? => $errno,)*)*}
            }
        }

        impl core::fmt::Display for Error {
            #[allow(unused_variables, reason = "a text may show what it makes of its fields")]
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {$($(
                    Self::$variant $({ $($field),* })? => {
                        $(let $local = $made;)*
                        write!(f, $text)
                    }
                )*)*}
            }
        }

        impl core::error::Error for Error {}

        /// As `derive` would make it, except that a number is hexadecimal where the text shows it
        /// so, and with the text behind it: what `main` returns is shown this way.
        impl core::fmt::Debug for Error {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match *self {$($(
                    Self::$variant $({ $($field),* })? => f.debug_struct(stringify!($variant))
                        $($(.field(stringify!($field), errors!(@ $field $($shown)?)))*)?.finish(),
                )*)*}?;
                write!(f, " ({self})")
            }
        }
    };
    (@row $kind:ident $code:literal $name:ident $class:ident) => {
        ErrorRow {
            code: $code,
            name: stringify!($name),
            kind: ErrorKind::$kind,
            class: stringify!($class),
        }
    };
    (@ $field:ident) => { &$field };
    (@ $field:ident hex) => { &format_args!("{:#x}", $field) };
    (@ $field:ident register) => { &format_args!("{:#010x}", $field) };
}
